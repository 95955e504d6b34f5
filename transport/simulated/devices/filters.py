"""The filters of a simulated trace encoder, their comparators and registers: which instructions and data are traced.

A filter is the AND of its conditions; filters are ORed. A comparator makes two comparisons of signals of the ingress
port. The registers take effect when the encoder is enabled; there are no impdef signals.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Filter Registers", trTeFilter, trTeComp; the
codes and signals are those of Efficient Trace for RISC-V 2.0, "Ingress Port", "Instruction Trace Interface" and "Data
Trace Interface".
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import encoder_registers as te
from rvtrace_gdb.decode.program.instructions import ATOMIC, CSR, LOAD, STORE
from rvtrace_gdb.transport.simulated.hart.block import Accessed, TrapEntry

_RELATIONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_SPECIAL, _ALWAYS = 6, 7  # of trTeCompPFunction and trTeCompSFunction; 6: never, and input masked by SMatch
_IADDR = 0
_BOTH, _NOT_BOTH, _LATCHED = 1, 2, 3  # trTeCompMatchMode


class Signals(NamedTuple):
    """The signals of the port for one instruction or one exception, by the codes of trTeCompPInput; None: not valid."""

    iaddr: int | None
    context: int | None
    tval: int | None = None
    daddr: int | None = None


class Comparator:
    """A comparator unit. *control*: the fields of trTeCompControl. *bits*: the width of the signals; higher bits of the
    match values are ignored.

    A signal that is not valid matches no relation. `step` is to be called with every event, in order.
    """

    def __init__(self, control: Mapping[str, int], primary: int, secondary: int, bits: int) -> None:
        ones = (1 << bits) - 1
        self._p_input, self._s_input = control["trTeCompPInput"], control["trTeCompSInput"]
        self._p_function, self._s_function = control["trTeCompPFunction"], control["trTeCompSFunction"]
        self._mode = control["trTeCompMatchMode"]
        self._mask = secondary & ones if self._s_function == _SPECIAL else ones
        self._primary, self._secondary = primary & self._mask, secondary & ones
        self._p_notify = bool(control["trTeCompPNotify"]) and self._p_input == _IADDR
        self._s_notify = bool(control["trTeCompSNotify"]) and self._s_input == _IADDR
        self._latched = False
        self.output = self.notified = False
        """The result of the last step, and whether it is to be reported."""
        self.reset()

    @property
    def notifies(self) -> bool:
        """Whether it reports addresses (a watchpoint)."""
        return self._p_notify or self._s_notify

    @property
    def sees_accesses(self) -> bool:
        daddr = Signals._fields.index("daddr")
        return daddr in (self._p_input, self._s_input)

    def reset(self) -> None:
        """Reset it when tracing begins."""
        self._latched = self._mode == _LATCHED and self._p_function == _SPECIAL
        self.output = self.notified = False

    def step(self, signals: Signals) -> None:
        """Process the next event."""
        primary, secondary = self._compare_primary(signals), self._compare_secondary(signals)
        self.notified = (primary and self._p_notify) or (secondary and self._s_notify)
        if self._mode == _LATCHED:
            self.output = primary or self._latched
            self._latched = self.output and not secondary
        elif self._mode == _BOTH:
            self.output = primary and secondary
        elif self._mode == _NOT_BOTH:
            self.output = not (primary and secondary)
        else:
            self.output = primary

    def _compare_primary(self, signals: Signals) -> bool:
        if self._p_function >= _SPECIAL:
            return self._p_function == _ALWAYS
        value = signals[self._p_input]
        return value is not None and bool(_RELATIONS[self._p_function](value & self._mask, self._primary))

    def _compare_secondary(self, signals: Signals) -> bool:
        if self._s_function >= _SPECIAL:
            return True
        value = signals[self._s_input]
        return value is not None and bool(_RELATIONS[self._s_function](value, self._secondary))


PREFIX = "trTeFilter"
NESTING_BITS = 3
"""Width of the counters of nested traps."""

_DTYPES = {
    (LOAD, ""): 0,
    (STORE, ""): 1,
    **{(CSR, operation): 4 + n for n, operation in enumerate(("rw", "rs", "rc"))},
    **{(ATOMIC, operation): 8 + n for n, operation in enumerate(("swap", "add", "and", "or", "xor", "max", "min"))},
    (ATOMIC, "conditional store failure"): 15,
}


class FilterVerdict(NamedTuple):
    """The result for one instruction: it is traced, its data access is traced, a comparator reports its address."""

    instruction: bool
    data: bool
    notify: bool


class _HandlerCondition:
    """A condition that holds from a trap that matches to the return from it.

    The counter saturates, which then ends it early.
    """

    def __init__(self, bits: int) -> None:
        self._most = (1 << bits) - 1
        self._depth = 0

    def trap(self, matches: bool) -> None:
        if self._depth or matches:
            self._depth = min(self._depth + 1, self._most)

    def returned(self) -> None:
        self._depth = max(self._depth - 1, 0)

    @property
    def inside(self) -> bool:
        return self._depth > 0

    def reset(self) -> None:
        self._depth = 0


class FilterRegisters:
    """One filter. *control*, *inst*, *data*: fields of trTeFilterControl, -MatchInst and -MatchData, by name.

    *ecause*: the causes that match, a bit for each; the port has one signal for exceptions and interrupts.
    """

    def __init__(
        self,
        control: Mapping[str, int],
        inst: Mapping[str, int],
        ecause: int,
        data: Mapping[str, int],
        nesting_bits: int = NESTING_BITS,
    ) -> None:
        self._control = {name.removeprefix(PREFIX): value for name, value in control.items()}
        self._privileges = inst[PREFIX + "MatchChoicePrivilege"]
        self._wants_interrupt = bool(inst[PREFIX + "MatchValueInterrupt"])
        self._ecause = ecause
        self._dtypes, self._dsizes = data[PREFIX + "MatchChoiceDtype"], data[PREFIX + "MatchChoiceDsize"]
        self._by_ecause, self._by_kind = _HandlerCondition(nesting_bits), _HandlerCondition(nesting_bits)
        self._comparators = [
            self._control[f"Comp{n}"] for n in (1, 2, 3) if self._control["Enable"] and self._control[f"MatchComp{n}"]
        ]

    @property
    def sees_accesses(self) -> bool:
        return bool(self._control["MatchDtype"] or self._control["MatchDsize"])

    def trap(self, trap: TrapEntry) -> None:
        """Process a trap that the hart takes; `returned` is called when a handler has returned."""
        self._by_ecause.trap(bool(self._ecause >> trap.cause & 1))
        self._by_kind.trap(trap.interrupt == self._wants_interrupt)

    def returned(self) -> None:
        self._by_ecause.returned()
        self._by_kind.returned()

    def reset(self) -> None:
        self._by_ecause.reset()
        self._by_kind.reset()

    def matches(self, privilege: int, comparators: Sequence[Comparator], access: Accessed | None) -> bool:
        """Return whether an instruction matches; the comparators have already processed it."""
        control = self._control
        return bool(
            control["Enable"]
            and (not control["MatchPrivilege"] or self._privileges >> privilege & 1)
            and (not control["MatchEcause"] or self._by_ecause.inside)
            and (not control["MatchInterrupt"] or self._by_kind.inside)
            and all(comparators[number].output for number in self._comparators)
            and (not self.sees_accesses or (access is not None and self._fits(access)))
        )

    def _fits(self, access: Accessed) -> bool:
        dtype = _DTYPES.get((access.kind, access.operation))
        size = access.size.bit_length() - 1
        by_type = not self._control["MatchDtype"] or (dtype is not None and self._dtypes >> dtype & 1)
        return bool(by_type and (not self._control["MatchDsize"] or self._dsizes >> size & 1))


class Filters:
    """All filters and comparators in force. *instruction*, *data*: trTeInstFilters, trTeDataFilters."""

    def __init__(
        self, filters: Mapping[int, FilterRegisters], comparators: Sequence[Comparator], instruction: int, data: int
    ) -> None:
        self._filters = tuple(filters.values())
        self._comparators = comparators
        self._instruction = [unit for number, unit in filters.items() if instruction >> number & 1]
        self._data = [unit for number, unit in filters.items() if data >> number & 1]
        self._all_instructions, self._all_data = not instruction, not data

    @property
    def idle(self) -> bool:
        """Whether everything is traced and nothing reported."""
        return self._all_instructions and self._all_data and not any(unit.notifies for unit in self._comparators)

    @property
    def sees_accesses(self) -> bool:
        units: Iterable[FilterRegisters | Comparator] = (*self._filters, *self._comparators)
        return any(unit.sees_accesses for unit in units)

    def reset(self) -> None:
        for unit in self._filters:
            unit.reset()
        for comparator in self._comparators:
            comparator.reset()

    def judge(self, privilege: int, context: int, pc: int, access: Accessed | None) -> FilterVerdict:
        """Process the next retired instruction."""
        self._compare(Signals(pc, context, daddr=None if access is None else access.address))
        return FilterVerdict(
            self._all_instructions or self._any(self._instruction, privilege, access),
            access is not None and (self._all_data or self._any(self._data, privilege, access)),
            any(unit.notified for unit in self._comparators),
        )

    def trap(self, trap: TrapEntry, context: int) -> None:
        """Process a trap. The port shows the address and the tval of an exception; for an interrupt neither."""
        self._compare(Signals(None, context) if trap.interrupt else Signals(trap.epc, context, trap.tval))
        for unit in self._filters:
            unit.trap(trap)

    def returned(self) -> None:
        """Process the return of a trap handler, which was the last instruction."""
        for unit in self._filters:
            unit.returned()

    def _compare(self, signals: Signals) -> None:
        for unit in self._comparators:
            unit.step(signals)

    def _any(self, units: Sequence[FilterRegisters], privilege: int, access: Accessed | None) -> bool:
        return any(unit.matches(privilege, self._comparators, access) for unit in units)


FILTERS, COMPARATORS = te.FILTER_COUNT, te.COMPARATOR_COUNT
"""How many an encoder can have."""
_PRIVILEGES = 1 << 0 | 1 << 3  # U and M
_DTYPE_FIELDS = 0xFFFF & ~(1 << 2 | 1 << 3 | 1 << 7)  # those there are
_DSIZES = 0b1111  # 1 to 8 bytes
_ALL = (1 << 32) - 1


@dataclass(frozen=True)
class FilterUnits:
    """The numbers of filters and comparators. *data*: filters can match data accesses. *nesting_bits*: the width of the
    counters of nested traps.

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
        """Return the bits that can be written in each of these registers, by offset."""
        selection = (1 << self.filters) - 1
        bits = {te.INST_FILTERS.offset: selection, te.DATA_FILTERS.offset: selection if self.data else 0}
        for number, unit in enumerate(te.FILTERS):
            masks = self._of_filter(unit) if number < self.filters else (0,) * len(unit)
            bits |= {register.offset: mask for register, mask in zip(unit, masks, strict=True)}
        for number, pair in enumerate(te.COMPARATORS):
            present = number < self.comparators
            bits |= {register.offset: register.mask(*register.by_name) if present else 0 for register in pair}
        return bits

    def _of_filter(self, unit: te.FilterUnit) -> tuple[int, ...]:
        names = [name for name in unit.control.by_name if not name.endswith("Impdef")]
        if not self.comparators:
            names = [name for name in names if "Comp" not in name]
        if not self.data:
            names = [name for name in names if "MatchD" not in name]
        inst = unit.match_inst.pack(trTeFilterMatchChoicePrivilege=_PRIVILEGES, trTeFilterMatchValueInterrupt=1)
        data = unit.match_data.pack(trTeFilterMatchChoiceDtype=_DTYPE_FIELDS, trTeFilterMatchChoiceDsize=_DSIZES)
        return (unit.control.mask(*names), inst, _ALL, _ALL, 0, 0, data if self.data else 0)

    def legalize(self, register: Register, value: int) -> int:
        """Limit the comparator numbers in a filter to comparators that exist."""
        for n in (1, 2, 3):
            name = f"trTeFilterComp{n}"
            if name in register.by_name and self.comparators:
                value = register.put(value, name, min(register.get(value, name), self.comparators - 1))
        return value

    def in_force(self, read: Callable[[Register], int], bits: int) -> Filters:
        """Return the filters that the registers define now. *bits*: the width of addresses."""

        def fields(register: Register) -> dict[str, int]:
            return register.unpack(read(register))

        filters = {
            number: FilterRegisters(
                fields(unit.control),
                fields(unit.match_inst),
                read(unit.match_ecause_high) << 32 | read(unit.match_ecause_low),
                fields(unit.match_data),
                self.nesting_bits,
            )
            for number, unit in enumerate(te.FILTERS[: self.filters])
        }
        pairs = [
            Comparator(
                fields(unit.control),
                read(unit.p_match_high) << 32 | read(unit.p_match_low),
                read(unit.s_match_high) << 32 | read(unit.s_match_low),
                bits,
            )
            for unit in te.COMPARATORS[: self.comparators]
        ]
        return Filters(filters, pairs, read(te.INST_FILTERS), read(te.DATA_FILTERS))
