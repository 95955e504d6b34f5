"""The timestamp unit of a simulated trace component: the counter behind trTsControl.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Timestamp Unit". Internal System counts time, which goes
on while the hart sleeps; Internal Core counts the hart's own clock, which stands still then. In Debug Mode no clock of
the simulated target runs, so trTsRunInDebug stays 0. Shared is the counter of a unit above, on the same system clock;
External is a value from elsewhere.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.controlregs import timestamp
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.timestamp import TsMode

Clock = Callable[[], int]

BITS = 40
"""Width of the counter."""
IMPLEMENTED = {"trTsActive": 1, "trTsCount": 1, "trTsMode": 7, "trTsPrescale": 3, "trTsEnable": 1}
"""Bits of the WARL fields of trTsControl that can be written, by field."""

_GET = timestamp.CONTROL.get
_ACTIVE, _RESET = timestamp.CONTROL.mask("trTsActive"), timestamp.CONTROL.mask("trTsReset")


class TimestampUnit:
    """*clocks* gives the input clock of each mode there is, in cycles; the first one is what others become.

    *above*: the unit whose counter mode Shared is; without *clocks* that is the only mode. Its input clock must be that
    of Internal System. *limit*: what becomes of trTsControl beyond that.
    """

    def __init__(
        self,
        clocks: Mapping[int, Clock],
        bits: int = BITS,
        above: "TimestampUnit | None" = None,
        limit: Callable[[int], int] = lambda value: value,
    ) -> None:
        self.bits = bits
        self.control = 0
        """trTsControl."""
        self.powered = True
        """Whether what contains it is; else it passes nothing on."""
        self._clocks = clocks
        self._above = above
        self._limit = limit
        self._offset = 0  # the input clock when the counter was 0
        self._held = 0  # the counter while it does not run

    @property
    def enabled(self) -> bool:
        """Messages carry timestamps."""
        return bool(_GET(self.control, "trTsEnable"))

    @property
    def counts_idle_time(self) -> bool:
        return self._mode in (TsMode.INTERNAL_SYSTEM, TsMode.SHARED)

    @property
    def clock(self) -> int:
        """The input clock now, in cycles."""
        if self._mode == TsMode.SHARED:
            own = self._clocks.get(TsMode.INTERNAL_SYSTEM)
            return own() if own is not None else self._above.clock if self._above is not None else 0
        return self._clocks[self._mode]() if self._mode in self._clocks else 0

    @property
    def shift(self) -> int:
        """The counter is the clock shifted right by this (trTsPrescale)."""
        if self._mode == TsMode.SHARED and self._above is not None:
            return self._above.shift
        return 0 if self._mode == TsMode.EXTERNAL else 2 * _GET(self.control, "trTsPrescale")

    def at(self, clock: int) -> int:
        """The counter when the input clock stood at *clock*, not wrapped at its width."""
        if self._mode == TsMode.SHARED and self._above is not None:
            return self._above.at(clock) if self.powered else 0
        if self._mode == TsMode.EXTERNAL:
            return clock
        return clock - self._offset >> self.shift if self._running else self._held

    @property
    def counter(self) -> int:
        """trTsCounterHigh and trTsCounterLow."""
        return self.at(self.clock) & (1 << self.bits) - 1

    def load(self, register: Register) -> int:
        """What a read of one of its registers gives."""
        if register is timestamp.CONTROL:
            return register.put(self.control, "trTsWidth", self.bits)
        return self.counter & 0xFFFF_FFFF if register is timestamp.COUNTER_LOW else self.counter >> 32

    def reset(self, legal: int = 0, undefined: int = 0) -> None:
        """*legal*, *undefined*: as in `write`, if the unit is active whenever what contains it is."""
        self.control = self._offset = self._held = 0
        if self._limit(0) & _ACTIVE:
            self.control = self._legalized(undefined & legal | _ACTIVE)

    def write(self, value: int, legal: int, undefined: int) -> int:
        """A write of trTsControl; returns the value in force.

        *legal*: the bits that can be written. *undefined*: what they hold when trTsActive becomes 1; what is written
        with it is not heeded.
        """
        if not self._limit(value & legal) & _ACTIVE:
            self.reset()
        elif not self.control & _ACTIVE:
            self.control = self._legalized(undefined & legal | _ACTIVE)
        else:
            self._held = 0 if value & _RESET else self.at(self.clock)
            self.control = self._legalized(value & legal)
            self._offset = self.clock - (self._held << self.shift)
        return self.control

    @property
    def _mode(self) -> int:
        return _GET(self.control, "trTsMode") if self._clocks else TsMode.SHARED

    @property
    def _running(self) -> bool:
        return bool(_GET(self.control, "trTsCount")) and self._mode in self._clocks

    def _legalized(self, value: int) -> int:
        modes = [TsMode.NONE, *self._clocks, *([TsMode.SHARED] if self._above is not None else [])]
        if not self._clocks:
            modes = [TsMode.SHARED]
        if _GET(value, "trTsMode") not in modes:
            value = timestamp.CONTROL.put(value, "trTsMode", next(mode for mode in modes if mode != TsMode.NONE))
        value = self._limit(value)
        return value if _GET(value, "trTsMode") else timestamp.CONTROL.put(value, "trTsEnable", 0)
