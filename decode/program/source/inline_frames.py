"""The source frames of instructions: the function that an instruction is of, and the functions it was inlined into.

Compilers name a place in a profile by the linker's name of a function, the distance of a line from the one in which the
function is declared, and the discriminator of the line table; and where a function was inlined, by the place of its
call, too.

Source: DWARF 5, 3.3.8.2 "Concrete Instances of Inlined Subroutines"; DW_AT_GNU_discriminator of LLVM.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.inlined_code import code_ranges
from rvtrace_gdb.decode.program.source.source_lines import LineTableRow, SourceLines

_FUNCTION, _INLINED = "DW_TAG_subprogram", "DW_TAG_inlined_subroutine"
_NAMES = ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name", "DW_AT_name")
_ORIGINS = ("DW_AT_abstract_origin", "DW_AT_specification")
_ORIGINS_AT_MOST = 16
_DEPTH_AT_MOST = 256


class SourceFrame(NamedTuple):
    """A place in a function.

    function       its name, as linkers have it
    first_line     the line in which it is declared, 0 if that is not known
    line           the line of the place, 0 if that is not known
    discriminator  as the compiler encoded it, 0 without one
    path           the file of the line, "" if that is not known
    """

    function: str
    first_line: int
    line: int
    discriminator: int
    path: str = ""


class _InlineScope(NamedTuple):
    """A function, or a call of one that was inlined (*call_line* and *call_discriminator* are those of the call)."""

    function: str
    first_line: int
    call_line: int
    call_discriminator: int


class InlineFrames:
    """The frames of the instructions of a file. *problems*: why some are not known, one text each."""

    def __init__(self, elf: Elf, pcs: Iterable[int]) -> None:
        self._pcs = sorted(set(pcs))
        self._scopes: dict[int, list[_InlineScope]] = {}
        self._units: dict[int, int] = {}  # of instructions, by their addresses
        self._unit = 0  # that is read
        image = Image(elf.xlen)
        image.add_elf(elf)
        lines = SourceLines(image)
        self._rows = sorted((row for unit in lines.tables() for row in unit.rows), key=lambda row: row.address)
        self._starts = [row.address for row in self._rows]
        self.problems = lines.problems
        self.inlined: set[str] = set()
        """The functions that were inlined somewhere, as linkers name them."""
        self._read_scopes(elf)

    def at(self, pc: int) -> tuple[SourceFrame, ...]:
        """Return the frames of an instruction, that of its own function first; none if its function is not known."""
        row = self.row(pc)
        line, discriminator = (row.line, row.discriminator) if row is not None else (0, 0)
        path = "" if row is None else row.path
        found: list[SourceFrame] = []
        for scope in reversed(self._scopes.get(pc, ())):
            found.append(SourceFrame(scope.function, scope.first_line, line, discriminator, path))
            line, discriminator, path = scope.call_line, scope.call_discriminator, ""
        return tuple(found)

    def complete_frames(self, pc: int) -> tuple[SourceFrame, ...]:
        """Return the same if the function and the line of each frame are known, else none."""
        frames = self.at(pc)
        return frames if all(frame.line and frame.function for frame in frames) else ()

    def row(self, pc: int) -> LineTableRow | None:
        """Return the row of the line table that an instruction is of, None for none."""
        at = bisect_right(self._starts, pc) - 1
        last = self._starts[at] if at >= 0 else None
        while at >= 0 and self._starts[at] == last:
            if self._rows[at].line:
                return self._rows[at]
            at -= 1
        return None

    def _read_scopes(self, elf: Elf) -> None:
        from rvtrace_gdb.decode.program import dwarf_file  # pyelftools, which takes long to load

        try:
            for unit in dwarf_file.open_dwarf(elf).iter_CUs():
                self._unit = unit.cu_offset
                self._add_functions(unit.get_top_DIE(), 0)
        except BadElf as error:
            self.problems = self.problems or [str(error)]
        except dwarf_file.ERRORS as error:
            why = str(error) or type(error).__name__
            self.problems = [*self.problems, f"{elf.path}: a part of its debug information cannot be read ({why})"]

    def in_one_unit(self, pc: int, other: int) -> bool:
        """Return whether both instructions are of the same unit of compilation."""
        return self._units.get(pc) == self._units.get(other)

    def _add_functions(self, entry: Any, depth: int) -> None:
        for child in entry.iter_children() if depth <= _DEPTH_AT_MOST else ():
            is_scope = child.tag in (_FUNCTION, _INLINED)
            if is_scope:
                self._add_scope(child)
            if child.has_children:
                self._add_functions(child, depth + 1)

    def _add_scope(self, entry: Any) -> None:
        pieces = list(code_ranges(entry))
        if not pieces:
            return
        chain = list(_chain(entry))
        names = ("DW_AT_call_line", "DW_AT_GNU_discriminator")
        call_line, call_discriminator = (_attribute_number([entry], name) for name in names)
        scope = _InlineScope(_name(chain), _attribute_number(chain, "DW_AT_decl_line"), call_line, call_discriminator)
        if entry.tag == _INLINED:
            self.inlined.add(scope.function)
        for start, end in pieces:
            for pc in self._pcs[bisect_left(self._pcs, start) : bisect_left(self._pcs, end)]:
                if entry.tag == _FUNCTION:
                    self._scopes[pc], self._units[pc] = [scope], self._unit
                elif pc in self._scopes:
                    self._scopes[pc].append(scope)


def _chain(entry: Any) -> Iterator[Any]:
    """Yield an entry, and those that it completes: few, but where the file is damaged."""
    for _ in range(_ORIGINS_AT_MOST):
        yield entry
        origin = next((name for name in _ORIGINS if name in entry.attributes), None)
        if origin is None:
            return
        entry = entry.get_DIE_from_attribute(origin)


def _name(chain: Iterable[Any]) -> str:
    entries = list(chain)
    found = (it.attributes[name].value for name in _NAMES for it in entries if name in it.attributes)
    value = next(found, b"")
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _attribute_number(entries: Iterable[Any], name: str) -> int:
    value = next((it.attributes[name].value for it in entries if name in it.attributes), 0)
    return int(value) if isinstance(value, int) else 0
