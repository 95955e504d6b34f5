"""How a program's functions save registers, as gdb's own unwinder reads it: the call frame information of ELF files.

Source: DWARF 5, 6.4 "Call Frame Information"; RISC-V ELF psABI, "DWARF Register Numbers": 0 to 31 are x0 to x31.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from rvtrace_gdb.decode.dwarf import debug_information, errors
from rvtrace_gdb.decode.elf import Elf
from rvtrace_gdb.decode.image import Image

SAME, UNDEFINED, AT, VALUE, IN, COMPUTED = ["same", "undefined", "at", "value", "in", "computed"]
"""A register of the caller is as it is here; is lost; is saved at the CFA + *n*; is the CFA + *n*; is in register *n*;
is what a DWARF expression says.
"""
_KINDS = {"UNDEFINED": UNDEFINED, "SAME_VALUE": SAME, "OFFSET": AT, "VAL_OFFSET": VALUE, "REGISTER": IN}
_RA = 1


class Rule(NamedTuple):
    """Where a register of the caller is."""

    kind: str
    n: int = 0


class Rules(NamedTuple):
    """At an instruction. *cfa*: register and offset of the canonical frame address. *ra*: where the function returns to
    is the caller's register *ra*.
    """

    cfa: tuple[int, int]
    registers: dict[int, Rule]
    ra: int = _RA


class _Function(NamedTuple):
    """*entry*: of pyelftools; *bias*: how far above its addresses it is."""

    start: int
    stop: int
    bias: int
    entry: Any


class CallFrames:
    """Of all files of a program; those that cannot be read, or are not there any more, have none."""

    def __init__(self, image: Image) -> None:
        found = (function for elf, bias in image.elves for function in _functions(elf, bias))
        self._functions = sorted(found, key=lambda function: function.start)
        self._starts = [function.start for function in self._functions]
        self._tables: dict[int, list[Any]] = {}

    def at(self, address: int) -> Rules | None:
        """The rules at an address, None where there are none, or the CFA is an expression."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self._functions[number].stop:
            return None
        function = self._functions[number]
        rows = [row for row in self._table(number) if row["pc"] + function.bias <= address]
        if not rows or rows[-1]["cfa"] is None or rows[-1]["cfa"].reg is None:
            return None
        row = rows[-1]
        rules = {register: _rule(row[register]) for register in row if isinstance(register, int)}
        return Rules((row["cfa"].reg, row["cfa"].offset), rules, function.entry.cie["return_address_register"])

    def _table(self, number: int) -> list[Any]:
        if number not in self._tables:
            try:
                self._tables[number] = self._functions[number].entry.get_decoded().table
            except errors():
                self._tables[number] = []
        return self._tables[number]


def _rule(rule: Any) -> Rule:
    kind = _KINDS.get(rule.type, COMPUTED)
    return Rule(kind, rule.arg if kind in (AT, VALUE, IN) else 0)


def _functions(elf: Elf, bias: int) -> Iterator[_Function]:
    from elftools.dwarf.callframe import FDE  # a tenth of a second, for those who go back in a tandem trace

    try:
        entries = _entries(debug_information(elf))
    except errors():
        entries = []
    for entry in entries:
        if isinstance(entry, FDE):
            start = entry["initial_location"] + bias
            yield _Function(start, start + entry["address_range"], bias, entry)


def _entries(dwarf: Any) -> list[Any]:
    """Those of .eh_frame; and of .debug_frame, which gdb takes first."""
    if dwarf is None:
        return []
    found = list(dwarf.EH_CFI_entries()) if dwarf.has_EH_CFI() else []
    return found + (list(dwarf.CFI_entries()) if dwarf.has_CFI() else [])
