"""Which variables a name means at an instruction of a program, by its debug information.

Source: DWARF 5, 3 "Program Scope Entries", 4 "Data Object and Object List Entries"; the order in which gdb looks for a
name (symtab.c, `lookup_symbol`): the blocks of the function from the inside out, members of `this`, the file, the
program.
"""

from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from rvtrace_gdb.decode.expressions.btf_types import BtfTypes
from rvtrace_gdb.decode.expressions.debug_types import (
    DebugTypes,
    completed,
    full_name,
    language_of,
    scope_names,
    text_of,
)
from rvtrace_gdb.decode.expressions.types import Enum, ValueType
from rvtrace_gdb.decode.program.dwarf_file import ERRORS, open_dwarf
from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.linux.btf import BadBtf, btf_of
from rvtrace_gdb.decode.program.source.inlined_code import code_ranges
from rvtrace_gdb.decode.program.source.source_lines import is_named

_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
_BLOCKS = ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine")
_FUNCTION, _INLINED = "DW_TAG_subprogram", "DW_TAG_inlined_subroutine"
_AROUND = ("DW_TAG_namespace", "DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type", "DW_TAG_module")
_TYPES = (
    "DW_TAG_base_type", "DW_TAG_typedef", "DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type",
    "DW_TAG_enumeration_type",
)  # fmt: skip
_KINDS = {"struct": "DW_TAG_structure_type", "union": "DW_TAG_union_type", "enum": "DW_TAG_enumeration_type",
          "class": "DW_TAG_class_type"}  # fmt: skip


class DebugVariable(NamedTuple):
    """A variable: its entry of pyelftools, its type, and the function whose frame it is in, None for a global one.

    *bias*: the file is in memory so many bytes above its addresses.
    """

    entry: Any
    type: ValueType
    function: Any
    bias: int


class Constant(NamedTuple):
    """A name of an enumeration."""

    value: int
    type: ValueType


class CodeAddress(NamedTuple):
    """A function: where it begins, and its entry."""

    address: int
    entry: Any
    bias: int
    types: DebugTypes


NamedThing: TypeAlias = DebugVariable | Constant | CodeAddress
"""What a name may mean."""


class CodeScope(NamedTuple):
    """What is around an instruction: *blocks* from the inside out, up to the function, or one that is inlined.

    *concrete*: the function whose code it is, with the frame; *inside*: the names of the namespaces around.
    """

    unit: "DebugUnit"
    blocks: Sequence[Any]
    concrete: Any
    inside: Sequence[str]

    @property
    def function(self) -> Any:
        return self.blocks[-1] if self.blocks else None


class DebugUnit:
    """A compilation unit. Its entries are read when they are asked for. Methods raise `dwarf_file.ERRORS`."""

    def __init__(self, unit: Any, types: DebugTypes, bias: int) -> None:
        self.unit, self.types, self.bias = unit, types, bias
        self.language = language_of(unit)
        self._functions: list[tuple[int, int, Any]] | None = None
        self._names: dict[str, list[Any]] | None = None

    def function_at(self, address: int) -> Any:
        """Return the entry of the function that an address of the file is in, None for none."""
        if self._functions is None:
            self._functions = sorted(
                ((start, end, entry) for entry in self._tagged_entries(_FUNCTION) for start, end in code_ranges(entry)),
                key=lambda it: it[:2],
            )
        at = bisect_right(self._functions, address, key=lambda it: it[0]) - 1
        return self._functions[at][2] if at >= 0 and address < self._functions[at][1] else None

    def _tagged_entries(self, tag: str) -> Iterator[Any]:
        waiting = [self.unit.get_top_DIE()]
        while waiting:
            for child in waiting.pop().iter_children():
                if child.tag == tag:
                    yield child
                if child.tag in _AROUND:
                    waiting.append(child)

    def entries_named(self, name: str) -> Sequence[Any]:
        """Return the entries with a full name: variables, functions, types and names of enumerations of the unit."""
        if self._names is None:
            self._names = {}
            waiting = [self.unit.get_top_DIE()]
            while waiting:
                for child in waiting.pop().iter_children():
                    if child.tag in _AROUND:
                        waiting.append(child)
                    if child.tag in ("DW_TAG_variable", _FUNCTION, *_TYPES):
                        self._names.setdefault(full_name(child), []).append(child)
                    if child.tag == "DW_TAG_enumeration_type":
                        self._add_enumerators(child)
        return self._names.get(name, ())

    def inlined_starts(self, origins: Container[int]) -> Iterator[int]:
        """Yield where the inlined code of functions begins: those whose entries are at some places."""
        waiting = [(entry, False) for entry in self._tagged_entries(_FUNCTION)]
        while waiting:
            entry, is_inlined = waiting.pop()
            if is_inlined and entry.get_DIE_from_attribute("DW_AT_abstract_origin").offset in origins:
                yield from (start + self.bias for start, _ in islice(code_ranges(entry), 1))
            waiting += [(it, it.tag == _INLINED) for it in entry.iter_children() if it.tag in _BLOCKS]

    def _add_enumerators(self, entry: Any) -> None:
        assert self._names is not None
        is_class = "DW_AT_enum_class" in entry.attributes
        around = [*scope_names(entry), *([text_of(entry, "DW_AT_name")] if is_class else [])]
        for it in entry.iter_children():
            if it.tag == "DW_TAG_enumerator":
                self._names.setdefault("::".join([*around, text_of(it, "DW_AT_name")]), []).append(it)


class _DebugFile:
    """The debug information of a file that is in memory *bias* bytes above its addresses."""

    def __init__(self, elf: Elf, bias: int) -> None:
        self.bias = bias
        self.units: list[DebugUnit] = []
        self._ranges: list[tuple[int, int, DebugUnit]] = []
        dwarf = open_dwarf(elf)
        types = DebugTypes(elf.xlen // 8)
        for unit in dwarf.iter_CUs():
            one = DebugUnit(unit, types, bias)
            self.units.append(one)
            self._ranges += [(start, end, one) for start, end in code_ranges(unit.get_top_DIE())]

    def units_at(self, address: int) -> Iterator[DebugUnit]:
        """Yield the units that may have an address: those that say so first."""
        said = [unit for start, end, unit in self._ranges if start <= address - self.bias < end]
        yield from said
        yield from (unit for unit in self.units if unit not in said)


class ProgramVariables:
    """The variables of a program. *problems*: why some of it cannot be read, one text each."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.problems: list[str] = []
        self._files: list[_DebugFile] = []
        for elf, bias in image.layers:
            try:
                self._files.append(_DebugFile(elf, bias))
            except BadElf as error:
                self.problems.append(str(error))
            except ERRORS as error:
                why = str(error) or type(error).__name__
                self.problems.append(f"{elf.path}: its debug information cannot be read ({why})")
        self._scopes: dict[int, CodeScope | None] = {}
        self._kernel: BtfTypes | None = None
        self._has_kernel: bool | None = None

    @property
    def kernel_types(self) -> BtfTypes | None:
        """The types of a Linux kernel in its own memory, which are asked where debug information has none; None: there
        are none.
        """
        if self._has_kernel is None:
            self._has_kernel = False
            try:
                found = btf_of(self.image)
            except BadBtf as error:
                self.problems.append(str(error))
                found = None
            self._kernel = None if found is None else BtfTypes(found, self.image.xlen // 8)
            self._has_kernel = found is not None
        return self._kernel

    def scope_at(self, pc: int) -> CodeScope | None:
        """Return what is around an instruction, None where the debug information has no function."""
        if pc not in self._scopes:
            self._scopes[pc] = self._read_scope(pc)
        return self._scopes[pc]

    def _read_scope(self, pc: int) -> CodeScope | None:
        for file in self._files:
            for unit in file.units_at(pc):
                function = unit.function_at(pc - file.bias)
                if function is not None:
                    return _scope(unit, function, pc - file.bias)
        return None

    def lookup(self, name: str, scope: CodeScope | None, file: str = "") -> "NamedThing | None":
        """Return what a name means, None for nothing. *file*: that of the unit, as the user names it."""
        if file:
            return self._in_units(name, [it for it in self._units() if is_named(_path(it.unit), file)])
        if scope is None:
            return self._in_units(name.removeprefix("::"), list(self._units()))
        if not name.startswith("::"):
            local = _local(name, scope)
            if local is not None:
                return local
        plain = name.removeprefix("::")
        around = scope.inside if not name.startswith("::") else ()
        candidates = ["::".join([*around[:count], plain]) for count in range(len(around), -1, -1)]
        candidates += [f"{it}::{plain}" for it in ("(anonymous namespace)",)]
        for units in ([scope.unit], [it for it in self._units() if it is not scope.unit]):
            for full in candidates:
                found = self._in_units(full, units)
                if found is not None:
                    return found
        return None

    def _in_units(self, name: str, units: Sequence[DebugUnit]) -> "NamedThing | None":
        """Return what a name means in units: what other files see before what they do not."""
        others: list[NamedThing] = []
        for unit in units:
            for entry in unit.entries_named(name):
                found = _meaning(entry, unit)
                if found is not None and any("DW_AT_external" in it.attributes for it in completed(entry)):
                    return found
                others += [found] if found is not None else []
        return others[0] if others else None

    def type_named(self, name: str, scope: CodeScope | None) -> ValueType | None:
        """Return a type: "struct tag", "uint8_t", "ns::box"; None: there is none."""
        first, _, tag = name.partition(" ")
        wanted = (_KINDS[first],) if first in _KINDS and tag else _TYPES
        plain = tag if first in _KINDS and tag else name
        inside = scope.inside if scope is not None else ()
        names = ["::".join([*inside[:count], plain]) for count in range(len(inside), -1, -1)]
        first_units = [scope.unit] if scope is not None else []
        for unit in [*first_units, *(it for it in self._units() if it not in first_units)]:
            for full in names:
                for entry in unit.entries_named(full):
                    if entry.tag in wanted and "DW_AT_declaration" not in entry.attributes:
                        return unit.types.type_of(entry)
        return None if self.kernel_types is None else self.kernel_types.kernel_type(name)

    def _units(self) -> Iterator[DebugUnit]:
        for file in self._files:
            yield from file.units

    def inlined_entries(self, name: str) -> Sequence[int]:
        """Return where code of a function begins that was made a part of others."""
        found: set[int] = set()
        for unit in self._units():
            functions = (it for it in unit.entries_named(name) if it.tag == _FUNCTION)
            origins = {it.offset for it in functions if "DW_AT_inline" in it.attributes}
            if origins:
                found.update(unit.inlined_starts(origins))
        return sorted(found)

    def definition(self, name: str) -> ValueType | None:
        """Return the structure of a name whose entry at hand is a declaration alone."""
        for unit in self._units():
            for entry in unit.entries_named(name):
                if entry.tag in _KINDS.values() and "DW_AT_declaration" not in entry.attributes:
                    return unit.types.type_of(entry)
        return None if self.kernel_types is None else self.kernel_types.structure(name)


def _path(unit: Any) -> str:
    return text_of(unit.get_top_DIE(), "DW_AT_name")


def _scope(unit: DebugUnit, function: Any, address: int) -> CodeScope:
    blocks = [function]
    block = function
    while block is not None:
        inner = None
        for child in block.iter_children():
            if child.tag in _BLOCKS and any(start <= address < end for start, end in code_ranges(child)):
                inner = child
                blocks = [child] if child.tag == _INLINED else [child, *blocks]
        block = inner
    return CodeScope(unit, blocks, function, scope_names(blocks[-1]))


def _local(name: str, scope: CodeScope) -> DebugVariable | Constant | None:
    for block in scope.blocks:
        found = [it for it in block.iter_children() if it.tag in _VARIABLES and text_of(it, "DW_AT_name") == name]
        for it in reversed(found):  # of two in one block, the later one: what came before is hidden
            if "DW_AT_declaration" not in it.attributes:
                return DebugVariable(it, scope.unit.types.of(it), scope.concrete, scope.unit.bias)
    return None


def local_variables(scope: CodeScope, tag: str) -> Iterator[tuple[str, DebugVariable]]:
    """Yield the variables of the outermost block, the function itself: its parameters, say, with their names."""
    for it in scope.function.iter_children():
        if it.tag == tag:
            yield text_of(it, "DW_AT_name"), DebugVariable(it, scope.unit.types.of(it), scope.concrete, scope.unit.bias)


def _meaning(entry: Any, unit: DebugUnit) -> "NamedThing | None":
    if entry.tag == "DW_TAG_variable":
        has_place = "DW_AT_location" in entry.attributes or "DW_AT_const_value" in entry.attributes
        return DebugVariable(entry, unit.types.of(entry), None, unit.bias) if has_place else None
    if entry.tag == "DW_TAG_enumerator":
        kind = unit.types.type_of(entry.get_parent())
        assert isinstance(kind, Enum)
        return Constant(int(entry.attributes["DW_AT_const_value"].value), kind)
    if entry.tag == _FUNCTION and "DW_AT_low_pc" in entry.attributes:
        return CodeAddress(int(entry.attributes["DW_AT_low_pc"].value) + unit.bias, entry, unit.bias, unit.types)
    return None
