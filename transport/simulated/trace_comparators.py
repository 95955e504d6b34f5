"""The comparators of a simulated trace encoder: two comparisons of signals of the ingress port, and what they make.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Filter Registers", trTeComp; the signals are
those of Efficient Trace for RISC-V 2.0, "Instruction Trace Interface" and "Data Trace Interface".
"""

import operator
from collections.abc import Mapping
from typing import NamedTuple

_RELATIONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_SPECIAL, _ALWAYS = 6, 7  # of trTeCompPFunction and trTeCompSFunction; 6: never, and input masked by SMatch
_IADDR = 0
_BOTH, _NOT_BOTH, _LATCHED = 1, 2, 3  # trTeCompMatchMode


class Signals(NamedTuple):
    """What the port shows of one instruction or one exception, by the codes of trTeCompPInput; None: not valid."""

    iaddr: int | None
    context: int | None
    tval: int | None = None
    daddr: int | None = None


class Comparator:
    """*control*: the fields of trTeCompControl. *bits*: the width of the signals, more of the match values is ignored.

    A signal that is not valid fits no relation. `step` is to be called with everything that happens, in order.
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
        """It reports addresses (a watchpoint)."""
        return self._p_notify or self._s_notify

    @property
    def sees_accesses(self) -> bool:
        daddr = Signals._fields.index("daddr")
        return daddr in (self._p_input, self._s_input)

    def reset(self) -> None:
        """Tracing begins."""
        self._latched = self._mode == _LATCHED and self._p_function == _SPECIAL
        self.output = self.notified = False

    def step(self, signals: Signals) -> None:
        """The next thing that happens."""
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
