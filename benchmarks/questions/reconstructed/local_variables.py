"""What gdb would print of arguments and local variables at a place: what is known of it, and whether that is right.

Of the debug information: location lists, registers, frame base and CFA, pieces. What gdb cannot print with all values
known either is left out (entry values, variables that were optimized away).
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from elftools.dwarf.callframe import FDE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationExpr, LocationParser
from elftools.elf.elffile import ELFFile

from benchmarks.questions.reconstructed.claims import Claims, Shares
from benchmarks.questions.reconstructed.truth import Truth
from rvtrace_gdb.decode.reconstruction.facts import KnownValue

Read = Callable[[int], KnownValue]
Pieces = tuple[KnownValue, ...]
_SCOPES = ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine")
_MOST = 8  # bytes of a variable
_BINARY: dict[str, Callable[[int, int], int]] = {
    "DW_OP_plus": lambda a, b: a + b, "DW_OP_minus": lambda a, b: a - b, "DW_OP_mul": lambda a, b: a * b,
    "DW_OP_and": lambda a, b: a & b, "DW_OP_or": lambda a, b: a | b, "DW_OP_shl": lambda a, b: a << (b & 63),
}  # fmt: skip


class Variable(NamedTuple):
    """A variable: where its scope is, and (first, end, expression) of the places where it has a location."""

    first: int
    end: int
    size: int
    locations: list[tuple[int, int, Any]]


class LocalVariables:
    """The variables of a program."""

    def __init__(self, elf: Path) -> None:
        self._file = open(elf, "rb")  # noqa: SIM115 - its parts are read when they are needed
        self._dwarf = ELFFile(self._file).get_dwarf_info()

    @cached_property
    def _variables(self) -> list[Variable]:
        return [variable for unit in self._dwarf.iter_CUs() for variable in self._of_unit(unit)]

    def _of_unit(self, unit: Any) -> Iterator[Variable]:
        top = unit.get_top_DIE()
        low = top.attributes.get("DW_AT_low_pc")
        base, parser = 0 if low is None else low.value, DWARFExprParser(unit.structs)
        for entry in top.iter_children():
            if entry.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in entry.attributes:
                yield from self._in_scope(entry, unit, base, parser)

    def _in_scope(self, scope: Any, unit: Any, base: int, parser: DWARFExprParser) -> Iterator[Variable]:
        first, high = scope.attributes["DW_AT_low_pc"].value, scope.attributes["DW_AT_high_pc"]
        end = high.value if high.form == "DW_FORM_addr" else first + high.value
        for child in scope.iter_children():
            location = child.attributes.get("DW_AT_location")
            if child.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter") and location is not None:
                yield Variable(first, end, _size(child), list(self._locations(child, unit, base, parser, first, end)))
            elif child.tag in _SCOPES and "DW_AT_low_pc" in child.attributes:
                yield from self._in_scope(child, unit, base, parser)

    def _locations(
        self, entry: Any, unit: Any, base: int, parser: DWARFExprParser, first: int, end: int
    ) -> Iterator[tuple[int, int, Any]]:
        lists = LocationParser(self._dwarf.location_lists())
        found = lists.parse_from_attribute(entry.attributes["DW_AT_location"], unit["version"], entry)
        if isinstance(found, LocationExpr):
            yield first, end, _parsed(parser, found.loc_expr)
            return
        for one in found:
            if isinstance(one, BaseAddressEntry):
                base = one.base_address
            elif isinstance(one, LocationEntry):
                offset = 0 if one.is_absolute else base
                yield one.begin_offset + offset, one.end_offset + offset, _parsed(parser, one.loc_expr)

    @cached_property
    def _frames(self) -> list[tuple[int, int, Any]]:
        entries = [*(self._dwarf.CFI_entries() if self._dwarf.has_CFI() else [])]
        entries += self._dwarf.EH_CFI_entries() if self._dwarf.has_EH_CFI() else []
        found = [entry for entry in entries if isinstance(entry, FDE)]
        return [(it["initial_location"], it["initial_location"] + it["address_range"], it) for it in found]

    def cfa(self, pc: int, register: Read) -> KnownValue:
        for first, end, entry in self._frames:
            if first <= pc < end:
                rows = [row for row in entry.get_decoded().table if row["pc"] <= pc]
                if not rows or rows[-1]["cfa"].reg is None:
                    return None
                value = register(rows[-1]["cfa"].reg)
                return None if value is None else value + rows[-1]["cfa"].offset
        return None

    def at(self, pc: int, register: Read, byte: Read) -> list[Pieces | None]:
        """Return the pieces of each variable that has a location at *pc*; None: gdb cannot print it either."""
        found = []
        for variable in self._variables:
            if variable.first <= pc < variable.end:
                for first, end, operations in variable.locations:
                    if first <= pc < end:
                        found.append(self._evaluated(operations, pc, register, byte, variable.size))
                        break
        return found

    def _evaluated(self, operations: Any, pc: int, register: Read, byte: Read, size: int) -> Pieces | None:
        stack: list[KnownValue] = []
        pieces: list[KnownValue] = []
        place: Pieces | None = None
        for operation in operations:
            name, arguments = operation.op_name, operation.args
            if name == "DW_OP_piece":
                pieces += place or (None,)
                place = None
            elif name == "DW_OP_regx":
                place = (register(arguments[0]),)
            elif name == "DW_OP_stack_value":
                place = (stack.pop(),)
            elif name.startswith("DW_OP_reg"):
                place = (register(operation.op - 0x50),)
            elif not self._operate(operation, stack, pc, register):
                return None
        if pieces or place is not None:
            return tuple(pieces) or place
        if not operations:
            return None
        address = stack[-1] if stack else None
        return (None,) if address is None else tuple(byte(address + at) for at in range(min(size, _MOST)))

    def _operate(self, operation: Any, stack: list[KnownValue], pc: int, register: Read) -> bool:
        """Apply an operation to the stack; False: it is none that is understood here."""
        name, arguments = operation.op_name, operation.args
        if name.startswith("DW_OP_breg"):
            value = register(operation.op - 0x70)
            stack.append(None if value is None else value + arguments[0])
        elif name == "DW_OP_fbreg":
            value = self.cfa(pc, register)
            stack.append(None if value is None else value + arguments[0])
        elif name.startswith("DW_OP_lit"):
            stack.append(operation.op - 0x30)
        elif name == "DW_OP_addr" or name.startswith("DW_OP_const"):
            stack.append(arguments[0])
        elif name == "DW_OP_plus_uconst":
            value = stack.pop()
            stack.append(None if value is None else value + arguments[0])
        elif name in _BINARY:
            b, a = stack.pop(), stack.pop()
            stack.append(None if a is None or b is None else _BINARY[name](a, b))
        else:
            return False
        return True

    def compare(
        self, register: Read, byte: Callable[[int], KnownValue], truth: Truth, pc: int, claims: Claims, shares: Shares
    ) -> None:
        """Compare what is printed with what would be printed if everything was known."""
        mask = (1 << truth.run.xlen) - 1
        claimed = self.at(pc, register, lambda address: byte(address & mask))
        true = self.at(pc, truth.register, lambda address: truth.byte(address & mask))
        for mine, wanted in zip(claimed, true, strict=True):
            if wanted is None or None in wanted:
                continue
            known = mine is not None and None not in mine
            shares["locals"].add(known)
            claims.compared["local"] += known
            if known and mine != wanted:
                claims.note("local", truth.position, pc, _number(mine), _number(wanted))


def _parsed(parser: DWARFExprParser, code: Any) -> Any:
    """Return the operations of an expression; none if there is one that pyelftools does not know."""
    try:
        return parser.parse_expr(code)
    except KeyError:
        return ()


def _number(pieces: Pieces | None) -> int:
    return next((it for it in pieces or () if it is not None), 0)


def _size(entry: Any) -> int:
    """Return the bytes of a variable that are looked at."""
    for _ in range(_MOST):
        if "DW_AT_abstract_origin" in entry.attributes:
            entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
        elif "DW_AT_byte_size" in entry.attributes:
            return int(entry.attributes["DW_AT_byte_size"].value)
        elif entry.tag in ("DW_TAG_pointer_type", "DW_TAG_array_type") or "DW_AT_type" not in entry.attributes:
            return 4
        else:
            entry = entry.get_DIE_from_attribute("DW_AT_type")
    return 4
