"""The timestamp unit of a simulated trace component: the counter behind trTsControl.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Timestamp Unit". Internal System counts time, which goes
on while the hart sleeps; Internal Core counts the hart's own clock, which stands still then. In Debug Mode no clock of
the simulated target runs, so trTsRunInDebug stays 0.
"""

from collections.abc import Callable, Mapping

from controlregs import timestamp
from controlregs.timestamp import TsMode

Clock = Callable[[], int]

BITS = 40
"""Width of the counter."""
IMPLEMENTED = {"trTsActive": 1, "trTsCount": 1, "trTsMode": 7, "trTsPrescale": 3, "trTsEnable": 1}
"""Bits of the WARL fields of trTsControl that can be written, by field."""

_GET = timestamp.CONTROL.get
_ACTIVE, _RESET = timestamp.CONTROL.mask("trTsActive"), timestamp.CONTROL.mask("trTsReset")


class TimestampUnit:
    """*clocks* gives the input clock of each mode there is, in cycles; the first one is what others become."""

    def __init__(self, clocks: Mapping[int, Clock], bits: int = BITS) -> None:
        self.bits = bits
        self.control = 0
        """trTsControl."""
        self._clocks = clocks
        self._offset = 0  # the input clock when the counter was 0
        self._held = 0  # the counter while it does not run

    @property
    def enabled(self) -> bool:
        """Messages carry timestamps."""
        return bool(_GET(self.control, "trTsEnable"))

    @property
    def counts_idle_time(self) -> bool:
        return _GET(self.control, "trTsMode") == TsMode.INTERNAL_SYSTEM

    @property
    def clock(self) -> int:
        """The input clock now, in cycles."""
        mode = _GET(self.control, "trTsMode")
        return self._clocks[mode]() if mode in self._clocks else 0

    @property
    def shift(self) -> int:
        """The counter is the clock shifted right by this (trTsPrescale)."""
        return 2 * _GET(self.control, "trTsPrescale")

    def at(self, clock: int) -> int:
        """The counter when the input clock stood at *clock*, not wrapped at its width."""
        return clock - self._offset >> self.shift if self._running else self._held

    @property
    def counter(self) -> int:
        """trTsCounterHigh and trTsCounterLow."""
        return self.at(self.clock) & (1 << self.bits) - 1

    def reset(self) -> None:
        self.control = self._offset = self._held = 0

    def write(self, value: int, legal: int, undefined: int) -> int:
        """A write of trTsControl; returns the value in force.

        *legal*: the bits that can be written. *undefined*: what they hold when trTsActive becomes 1; what is written
        with it is not heeded.
        """
        if not value & legal & _ACTIVE:
            self.reset()
        elif not self.control & _ACTIVE:
            self.control = self._legalized(undefined & legal | _ACTIVE)
        else:
            self._held = 0 if value & _RESET else self.at(self.clock)
            self.control = self._legalized(value & legal)
            self._offset = self.clock - (self._held << self.shift)
        return self.control

    @property
    def _running(self) -> bool:
        return bool(_GET(self.control, "trTsCount")) and _GET(self.control, "trTsMode") in self._clocks

    def _legalized(self, value: int) -> int:
        if _GET(value, "trTsMode") not in (TsMode.NONE, *self._clocks):
            value = timestamp.CONTROL.put(value, "trTsMode", next(iter(self._clocks)))
        return value if _GET(value, "trTsMode") else timestamp.CONTROL.put(value, "trTsEnable", 0)
