"""Where gdb sets a breakpoint in a function: behind its prologue, so that arguments are where the debug information
says.

Source: gdb's symtab.c (`skip_prologue_sal`, `skip_prologue_using_sal`), riscv-tdep.c (`riscv_skip_prologue`), and
dwarf2/read.c (`locations_valid`: of code whose variables have location lists nothing is skipped).
"""

from bisect import bisect_right
from typing import Any

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.decode.program.source.source_lines import LineTableRow, SourceLines

_LISTS = ("DW_FORM_sec_offset", "DW_FORM_loclistx", "DW_FORM_data4", "DW_FORM_data8")
_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
_FUNCTION_BYTES = 1 << 20


class Prologues:
    """The prologues of a program's functions."""

    def __init__(self, image: Image) -> None:
        self._image = image
        lines = SourceLines(image)
        self._rows: list[LineTableRow] = sorted(
            (row for unit in lines.tables() for row in unit.rows), key=lambda row: row.address
        )
        self._starts = [row.address for row in self._rows]
        self._lines = lines

    def breakpoint(self, function: int, *, has_lists: bool) -> int:
        """Return where a breakpoint of the function at an address is. *has_lists*: whether any variable of its unit has
        a list of locations.
        """
        if has_lists or self._line_row(function) is None:
            return function
        end = self._function_end(function)
        pc = max(self._behind_prologue(function, end) or function, function)
        row = self._line_row(pc)
        if row is not None and row.address != pc and function < (after := self._end(pc)) < end:
            return after  # in the middle of a line: the next one
        return pc

    def _behind_prologue(self, function: int, end: int) -> int | None:
        first = self._line_row(function)
        if first is None or not first.line:
            return None
        at = bisect_right(self._starts, function) - 1
        if sum(1 for row in self._rows[max(at - 8, 0) : at + 1] if row.address == function and row.line) > 1:
            return function  # two lines at one address: there is no prologue
        line, path, stop = first.line, first.path, self._end(function)
        while stop < end:
            row = self._line_row(stop)
            if row is None or not row.line or row.line >= line or row.path != path:
                break
            line, stop = row.line, self._end(stop)  # the prologue goes on: instructions were moved into it
        return stop if stop < end else None

    def _line_row(self, address: int) -> LineTableRow | None:
        return self._lines.row(address)

    def _end(self, address: int) -> int:
        """Return where the next row of the line table begins."""
        at = bisect_right(self._starts, address)
        return self._starts[at] if at < len(self._starts) else 1 << 64

    def _function_end(self, function: int) -> int:
        pc = function
        try:
            while pc < function + _FUNCTION_BYTES and self._image.function(pc) in (function, None):
                pc += self._image.instruction(pc).length
        except (CodeMissing, UndecodableInstruction):
            pass
        return pc


def has_location_lists(unit: Any) -> bool:
    """Return whether any variable of a unit of pyelftools has a list of locations, and gcc has number_value it."""
    producer = unit.get_top_DIE().attributes.get("DW_AT_producer")
    if producer is None or not producer.value.startswith(b"GNU "):
        return False
    table = unit.get_abbrev_table()
    shapes = (table.get_abbrev(code) for code in table._abbrev_map)
    return any(
        it.name == "DW_AT_location" and it.form in _LISTS
        for shape in shapes
        if shape["tag"] in _VARIABLES
        for it in shape["attr_spec"]
    )
