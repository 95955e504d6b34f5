"""The filter registers of an encoder, as the Trace Control Interface 1.0 describes them, and what they let through.

Offsets and bits are spelled out here. The model is strict: a comparator or a choice that changes while a filter relies
on it fails the test, as does anything outside of the filter registers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

INST_FILTERS, DATA_CONTROL, DATA_FILTERS, FILTER, COMPARATOR = 0x0C, 0x10, 0x1C, 0x400, 0x600
STRIDE = 0x20
WORD = 0xFFFF_FFFF
# Of trTeFilterControl: enable, privilege, three comparators; of trTeCompControl: everything.
FILTER_CONTROL, COMP_CONTROL = 0x0000_FFF3, 0x0000_F77F

Legal = Callable[[int, int], int]


def document(filters: int, comparators: int, *, privileges: int = 0x7B, bits: int = 64) -> Legal:
    """What a write leaves of an encoder with so many units that have all there is for addresses and privileges."""

    def legal(offset: int, value: int) -> int:
        if offset in (INST_FILTERS, DATA_FILTERS):
            return value & (1 << filters) - 1
        if FILTER <= offset < COMPARATOR:
            number, register = divmod(offset - FILTER, STRIDE)
            return value & {0: FILTER_CONTROL, 4: privileges}.get(register, 0) if number < filters else 0
        number, register = divmod(offset - COMPARATOR, STRIDE)
        if number >= comparators:
            return 0
        high = (1 << bits) - 1 >> 32
        return value & {0: COMP_CONTROL, 0x10: WORD, 0x14: high, 0x18: WORD, 0x1C: high}.get(register, 0)

    return legal


@dataclass
class FilterModel:
    """A target that is one encoder at address 0. *legal*: what a write to an offset leaves. *bits*: of addresses."""

    legal: Legal
    bits: int = 64
    data: int = 0  # trTeDataControl
    registers: dict[int, int] = field(default_factory=dict)
    junk: int = 0  # in what was not written yet

    def read32(self, address: int) -> int:
        if address == DATA_CONTROL:
            return self.data
        return self.registers.get(address, self.legal(address, self.junk))

    def read_block(self, address: int, nbytes: int, progress: object = None) -> bytes:
        raise AssertionError("no blocks")

    def write32(self, address: int, value: int) -> None:
        assert address in (INST_FILTERS, DATA_FILTERS) or FILTER <= address < 0x700
        assert not any(address in needed for needed in self._relied_on()), f"{address:#x} changed under a condition"
        self.registers[address] = self.legal(address, value)

    def _relied_on(self) -> list[range]:
        """The registers that conditions of filters which are on depend on."""
        found = []
        for number in range(16):
            control = self.registers.get(FILTER + STRIDE * number, 0)
            for bit in (4, 8, 12):
                if control & 1 and control >> bit & 1:
                    base = COMPARATOR + STRIDE * (control >> bit + 1 & 7)
                    found.append(range(base, base + STRIDE))
            if control & 3 == 3:
                found.append(range(FILTER + STRIDE * number + 4, FILTER + STRIDE * number + 8))
        return found

    def traces(self, pc: int, priv: int, selection: int = INST_FILTERS) -> bool:
        """Whether an instruction is traced."""
        selected = self.read32(selection)
        return not selected or any(selected >> n & 1 and self._matches(n, pc, priv) for n in range(16))

    def _matches(self, number: int, pc: int, priv: int) -> bool:
        control = self.read32(FILTER + STRIDE * number)
        assert not control & ~0xFFF3, "a condition nobody asked for"
        choice = self.read32(FILTER + STRIDE * number + 4)
        conditions = [bool(control & 1), not control & 2 or bool(choice >> priv & 1)]
        conditions += [self._true(control >> bit + 1 & 7, pc) for bit in (4, 8, 12) if control >> bit & 1]
        return all(conditions)

    def _true(self, number: int, pc: int) -> bool:
        control, pl, ph, sl, sh = (self.read32(COMPARATOR + STRIDE * number + n) for n in (0, 0x10, 0x14, 0x18, 0x1C))
        ones = (1 << self.bits) - 1
        primary = _relation(control >> 4 & 7, pc & ones, (ph << 32 | pl) & ones)
        mode = control >> 12 & 3
        assert mode < 2 and not control & 3, "not the instruction's address"
        if mode == 0:
            return primary
        assert not control >> 2 & 3
        return primary and _relation(control >> 8 & 7, pc & ones, (sh << 32 | sl) & ones)


def _relation(function: int, left: int, right: int) -> bool:
    return [left == right, left != right, left < right, left <= right, left > right, left >= right][function]
