"""The filters of a simulated trace encoder: which instructions and which data accesses are traced.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Filter Registers", trTeFilter; the codes are
those of Efficient Trace for RISC-V 2.0, "Ingress Port". A filter is the AND of its conditions; filters are ORed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.memory_access import ATOMIC, CSR, LOAD, STORE
from rvtrace_gdb.transport.simulated.block import Accessed, TrapEntry
from rvtrace_gdb.transport.simulated.trace_comparators import Comparator, Signals

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


class Verdict(NamedTuple):
    """On one instruction: it is traced, its data access is, a comparator wants its address reported."""

    instruction: bool
    data: bool
    notify: bool


class _Handler:
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


class Filter:
    """One filter. *control*, *inst*, *data*: fields of trTeFilterControl, -MatchInst and -MatchData, by name.

    *ecause*: which causes fit, a bit for each; of exceptions and interrupts, for which the port has one signal.
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
        self._by_ecause, self._by_kind = _Handler(nesting_bits), _Handler(nesting_bits)
        self._comparators = [
            self._control[f"Comp{n}"] for n in (1, 2, 3) if self._control["Enable"] and self._control[f"MatchComp{n}"]
        ]

    @property
    def sees_accesses(self) -> bool:
        return bool(self._control["MatchDtype"] or self._control["MatchDsize"])

    def trap(self, trap: TrapEntry) -> None:
        """The hart takes a trap; `returned` when a handler has returned."""
        self._by_ecause.trap(bool(self._ecause >> trap.cause & 1))
        self._by_kind.trap(trap.interrupt == self._wants_interrupt)

    def returned(self) -> None:
        self._by_ecause.returned()
        self._by_kind.returned()

    def reset(self) -> None:
        self._by_ecause.reset()
        self._by_kind.reset()

    def matches(self, privilege: int, comparators: Sequence[Comparator], access: Accessed | None) -> bool:
        """Whether an instruction does, the comparators having seen it."""
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
        self, filters: Mapping[int, Filter], comparators: Sequence[Comparator], instruction: int, data: int
    ) -> None:
        self._filters = tuple(filters.values())
        self._comparators = comparators
        self._instruction = [unit for number, unit in filters.items() if instruction >> number & 1]
        self._data = [unit for number, unit in filters.items() if data >> number & 1]
        self._all_instructions, self._all_data = not instruction, not data

    @property
    def idle(self) -> bool:
        """Everything is traced and nothing reported."""
        return self._all_instructions and self._all_data and not any(unit.notifies for unit in self._comparators)

    @property
    def sees_accesses(self) -> bool:
        units: Iterable[Filter | Comparator] = (*self._filters, *self._comparators)
        return any(unit.sees_accesses for unit in units)

    def reset(self) -> None:
        for unit in self._filters:
            unit.reset()
        for comparator in self._comparators:
            comparator.reset()

    def judge(self, privilege: int, context: int, pc: int, access: Accessed | None) -> Verdict:
        """The next instruction has retired."""
        self._compare(Signals(pc, context, daddr=None if access is None else access.address))
        return Verdict(
            self._all_instructions or self._any(self._instruction, privilege, access),
            access is not None and (self._all_data or self._any(self._data, privilege, access)),
            any(unit.notified for unit in self._comparators),
        )

    def trap(self, trap: TrapEntry, context: int) -> None:
        """The port shows where an exception was and its tval; of an interrupt neither."""
        self._compare(Signals(None, context) if trap.interrupt else Signals(trap.epc, context, trap.tval))
        for unit in self._filters:
            unit.trap(trap)

    def returned(self) -> None:
        """The instruction judged last was a trap return."""
        for unit in self._filters:
            unit.returned()

    def _compare(self, signals: Signals) -> None:
        for unit in self._comparators:
            unit.step(signals)

    def _any(self, units: Sequence[Filter], privilege: int, access: Accessed | None) -> bool:
        return any(unit.matches(privilege, self._comparators, access) for unit in units)
