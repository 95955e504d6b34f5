"""The core-local interruptor: software interrupt and timer of one hart; `clint_shared` has that of several.

Layout as in SiFive's CLINT (FU540-C000 manual, chapter 9) and the RISC-V ACLINT specification 1.0: msip at 0x0000,
mtimecmp at 0x4000, mtime at 0xBFF8. Time is deterministic: mtime advances by one with every retired instruction, and
jumps to mtimecmp when the hart waits for the timer in WFI. As in Spike mtimecmp resets to 0, so the timer interrupt is
pending until a program writes mtimecmp.
"""

from typing import Protocol

from rvtrace_gdb.transport.simulated.bus import Bus, BusError

MSI, MTI, MEI = 3, 7, 11  # interrupt numbers: machine software, timer, external

MSIP, MTIMECMP, MTIME, SIZE = 0x0000, 0x4000, 0xBFF8, 0xC000
_TIMER_MASK = (1 << 64) - 1
# A wake-up this far away means "never": programs switch the timer off by writing all ones, or as good as all ones.
_NEVER = 1 << 62


class TimedHart(Protocol):
    """What the CLINT needs of its hart."""

    clint: "Clint | None"

    @property
    def now(self) -> int:
        """Instructions retired so far, exact even in the middle of a compiled block."""

    def set_interrupt(self, number: int, level: bool) -> None:
        """Drive interrupt line *number* of mip."""

    def timer_changed(self) -> None:
        """`Clint.due` has changed."""


class Clint:
    """`due` is the count of retired instructions at which mtime reaches mtimecmp, `idle` the time slept so far.

    *bus* None: who made it carries out the accesses to its registers, with `read` and `write`.
    """

    def __init__(self, hart: TimedHart, bus: Bus | None, base: int = 0x0200_0000) -> None:
        self._hart = hart
        self._skew = 0
        self._compare = 0
        self._msip = 0
        self.due = 0
        self.idle = 0
        hart.clint = self
        if bus is not None:
            bus.add(base, SIZE, self.read, self.write)

    @property
    def mtime(self) -> int:
        return (self._hart.now + self._skew) & _TIMER_MASK

    @property
    def mtimecmp(self) -> int:
        return self._compare

    @property
    def can_wake(self) -> bool:
        """Whether the timer will ever expire."""
        return self.due - self._hart.now < _NEVER

    def reset(self) -> None:
        self._skew = -self._hart.now
        self._msip = 0
        self._set_compare(0)
        self._hart.set_interrupt(MSI, False)

    def skip_to_timer(self) -> None:
        """Let the time pass that the hart sleeps in the WFI it is executing: once it retires, mtime >= mtimecmp."""
        self._sleep(max(0, self.due - self._hart.now - 1))

    def _sleep(self, ticks: int) -> None:
        self._skew += ticks
        self.idle += ticks
        self._reschedule()

    def _set_compare(self, value: int) -> None:
        self._compare = value
        self._reschedule()

    def _reschedule(self) -> None:
        self.due = self._compare - self._skew
        self._hart.timer_changed()

    def read(self, offset: int, nbytes: int) -> int:
        value, start = self._register(offset, nbytes)
        return value >> 8 * (offset - start) & ((1 << 8 * nbytes) - 1)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        old, start = self._register(offset, nbytes)
        shift = 8 * (offset - start)
        new = old & ~(((1 << 8 * nbytes) - 1) << shift) | value << shift
        if start == MSIP:
            self._msip = new & 1
            self._hart.set_interrupt(MSI, bool(self._msip))
        elif start == MTIMECMP:
            self._set_compare(new)
        elif start == MTIME:
            self._skew += new - self.mtime
            self._reschedule()

    def _register(self, offset: int, nbytes: int) -> tuple[int, int]:
        """Value and offset of the register at *offset*; what no register answers reads as zero, as in Spike."""
        for start, size, value in ((MSIP, 4, self._msip), (MTIMECMP, 8, self._compare), (MTIME, 8, self.mtime)):
            if start <= offset < start + size:
                if offset + nbytes > start + size:
                    raise BusError(offset, nbytes)
                return value, start
        return 0, offset
