"""Which code of a compilation unit is that of functions that were inlined, and where these were called.

Source: DWARF 5, 3.3.8.2 "Concrete Instances of Inlined Subroutines".
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.names.unit_functions import ranges_of

_INLINED = "DW_TAG_inlined_subroutine"
_AROUND = frozenset(
    {
        "DW_TAG_subprogram", "DW_TAG_lexical_block", "DW_TAG_namespace", "DW_TAG_structure_type", "DW_TAG_class_type",
        "DW_TAG_union_type", "DW_TAG_module", "DW_TAG_try_block", "DW_TAG_catch_block", _INLINED,
    }
)  # fmt: skip
"""The entries that functions with inlined code are in."""
_DEPTH_AT_MOST = 256


class InlinedCode(NamedTuple):
    """The code from *start* to *end* - 1 is that of a function called in a *line* of the file *path*.

    *instance*: a number that all code of this call has; *depth*: how many calls and functions it is in.
    """

    start: int
    end: int
    depth: int
    instance: int
    path: str
    line: int

    def moved(self, bias: int) -> "InlinedCode":
        """Return the same code *bias* bytes above."""
        return self._replace(start=self.start + bias, end=self.end + bias)


def inlined_code(unit: Any, path_of: Callable[[int], str]) -> Iterator[InlinedCode]:
    """Yield the inlined code of a unit of pyelftools. *path_of*: returns a file of its line table.

    Raises what pyelftools raises, for damaged files.
    """
    top = unit.get_top_DIE()  # its abbreviations are read with it
    if _INLINED not in {entry["tag"] for entry in _abbreviations(unit)}:
        return
    yield from _inside(top, path_of, 0)


def _abbreviations(unit: Any) -> Iterator[Any]:
    table = unit.get_abbrev_table()
    for code in table._abbrev_map:
        yield table.get_abbrev(code)


def _inside(entry: Any, path_of: Callable[[int], str], depth: int) -> Iterator[InlinedCode]:
    if depth > _DEPTH_AT_MOST:
        return
    for child in entry.iter_children():
        if child.tag == _INLINED:
            yield from _inlined_pieces(child, path_of, depth)
        if child.tag in _AROUND and child.has_children:
            yield from _inside(child, path_of, depth + 1)


def _inlined_pieces(entry: Any, path_of: Callable[[int], str], depth: int) -> Iterator[InlinedCode]:
    file, line = (entry.attributes.get(f"DW_AT_call_{what}") for what in ("file", "line"))
    path = path_of(int(file.value)) if file is not None else ""
    for start, end in code_ranges(entry):
        yield InlinedCode(start, end, depth, int(entry.offset), path, int(line.value) if line is not None else 0)


def code_ranges(entry: Any) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the code of a function, or of a call of one that was inlined."""
    attributes = entry.attributes
    if "DW_AT_ranges" in attributes:
        yield from ranges_of(entry)
    elif "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
