"""The filter and comparator registers of a simulated trace encoder, and what they say.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Filter Registers". What they say counts from
when the encoder is enabled; there are no impdef signals.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rvtrace_gdb.controlregs import comparators as comp
from rvtrace_gdb.controlregs import encoder as te
from rvtrace_gdb.controlregs import filters as fil
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.transport.simulated.trace_comparators import Comparator
from rvtrace_gdb.transport.simulated.trace_filters import NESTING_BITS, Filter, Filters

FILTERS, COMPARATORS = fil.COUNT, comp.COUNT
"""How many an encoder can have."""
_PRIVILEGES = 1 << 0 | 1 << 3  # U and M
_DTYPES = 0xFFFF & ~(1 << 2 | 1 << 3 | 1 << 7)  # those there are
_DSIZES = 0b1111  # 1 to 8 bytes
_ALL = (1 << 32) - 1


@dataclass(frozen=True)
class FilterUnits:
    """How many there are. *data*: filters can look at data accesses. *nesting_bits*: of the counters of nested traps.

    Raises ValueError for more than the document has registers for.
    """

    filters: int = 0
    comparators: int = 0
    data: bool = True
    nesting_bits: int = NESTING_BITS

    def __post_init__(self) -> None:
        if not 0 <= self.filters <= FILTERS or not 0 <= self.comparators <= COMPARATORS:
            raise ValueError(f"an encoder has up to {FILTERS} filters and {COMPARATORS} comparators")

    def legal(self) -> dict[int, int]:
        """The bits that can be written, by offset, of every register this is about."""
        selection = (1 << self.filters) - 1
        bits = {te.INST_FILTERS.offset: selection, te.DATA_FILTERS.offset: selection if self.data else 0}
        for number, unit in enumerate(fil.FILTERS):
            masks = self._of_filter(unit) if number < self.filters else (0,) * len(unit)
            bits |= {register.offset: mask for register, mask in zip(unit, masks, strict=True)}
        for number, pair in enumerate(comp.COMPARATORS):
            present = number < self.comparators
            bits |= {register.offset: register.mask(*register.by_name) if present else 0 for register in pair}
        return bits

    def _of_filter(self, unit: fil.FilterUnit) -> tuple[int, ...]:
        names = [name for name in unit.control.by_name if not name.endswith("Impdef")]
        if not self.comparators:
            names = [name for name in names if "Comp" not in name]
        if not self.data:
            names = [name for name in names if "MatchD" not in name]
        inst = unit.match_inst.pack(trTeFilterMatchChoicePrivilege=_PRIVILEGES, trTeFilterMatchValueInterrupt=1)
        data = unit.match_data.pack(trTeFilterMatchChoiceDtype=_DTYPES, trTeFilterMatchChoiceDsize=_DSIZES)
        return (unit.control.mask(*names), inst, _ALL, _ALL, 0, 0, data if self.data else 0)

    def legalize(self, register: Register, value: int) -> int:
        """A filter names a comparator that exists."""
        for n in (1, 2, 3):
            name = f"trTeFilterComp{n}"
            if name in register.by_name and self.comparators:
                value = register.put(value, name, min(register.get(value, name), self.comparators - 1))
        return value

    def in_force(self, read: Callable[[Register], int], bits: int) -> Filters:
        """What the registers say now. *bits*: the width of addresses."""

        def fields(register: Register) -> dict[str, int]:
            return register.unpack(read(register))

        filters = {
            number: Filter(
                fields(unit.control),
                fields(unit.match_inst),
                read(unit.match_ecause_high) << 32 | read(unit.match_ecause_low),
                fields(unit.match_data),
                self.nesting_bits,
            )
            for number, unit in enumerate(fil.FILTERS[: self.filters])
        }
        pairs = [
            Comparator(
                fields(unit.control),
                read(unit.p_match_high) << 32 | read(unit.p_match_low),
                read(unit.s_match_high) << 32 | read(unit.s_match_low),
                bits,
            )
            for unit in comp.COMPARATORS[: self.comparators]
        ]
        return Filters(filters, pairs, read(te.INST_FILTERS), read(te.DATA_FILTERS))
