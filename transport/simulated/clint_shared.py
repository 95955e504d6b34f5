"""The core-local interruptor of several harts, and the time they share.

Layout as in `clint`, for hart i: msip at 4 * i, mtimecmp at 0x4000 + 8 * i; mtime is there once.

Harts take turns, and time passes for a hart as it retires instructions: in the middle of a round some are ahead of
others. At the end of it (`align`) those that were slower, slept or were halted catch up, so that mtime advances as fast
as the fastest hart. When all sleep it jumps to where the first of them wakes up (`skip_to_timer`).
"""

from collections.abc import Sequence
from typing import Protocol

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import MSIP, MTIME, MTIMECMP, SIZE, Clint, TimedHart

_MSIP_SIZE, _MTIMECMP_SIZE = 4, 8


class SleepingHart(TimedHart, Protocol):
    """What the CLINT needs of a hart that may sleep while others run."""

    def situation_changed(self) -> None:
        """The time it is for this hart makes a jump."""


class HartClint(Clint):
    """The part of one hart."""

    def __init__(self, hart: SleepingHart) -> None:
        super().__init__(hart, None)
        self._sleeper = hart

    @property
    def can_wake(self) -> bool:
        """WFI sleeps: whether time may jump is not for one hart to say."""
        return False

    @property
    def wakes_after(self) -> int | None:
        """How long until the timer expires; None: never."""
        return max(0, self.due - self._sleeper.now) if super().can_wake else None

    @property
    def elapsed(self) -> int:
        return self._sleeper.now + self.idle

    def catch_up(self, elapsed: int) -> None:
        if elapsed > self.elapsed:
            self._sleep(elapsed - self.elapsed)
            self._sleeper.situation_changed()

    def shift(self, ticks: int) -> None:
        """mtime was written."""
        self._skew += ticks
        self._reschedule()

    def reset(self) -> None:
        """A hart by itself is reset, and the CLINT is not."""

    def restart(self) -> None:
        """All is reset."""
        super().reset()


class SharedClint:
    """`reading`: whose time it is that mtime shows, the hart's that executes."""

    def __init__(self, harts: Sequence[SleepingHart], bus: Bus, base: int) -> None:
        self.parts = tuple(HartClint(hart) for hart in harts)
        self.reading = self.parts[0]
        bus.add(base, SIZE, self._read, self._write)

    def align(self) -> None:
        """Harts that are behind catch up."""
        elapsed = max(part.elapsed for part in self.parts)
        for part in self.parts:
            part.catch_up(elapsed)

    def skip_to_timer(self, waiting: Sequence[HartClint]) -> None:
        """Let the time pass until the timer of the first of *waiting* expires. All must be aligned."""
        times = [after for part in waiting if (after := part.wakes_after) is not None]
        if times:
            for part in self.parts:
                part.catch_up(part.elapsed + min(times))

    def reset(self) -> None:
        self.align()
        for part in self.parts:
            part.restart()

    def _read(self, offset: int, nbytes: int) -> int:
        part, inside = self._part(offset)
        return part.read(inside, nbytes) if part is not None else 0

    def _write(self, offset: int, nbytes: int, value: int) -> None:
        part, inside = self._part(offset)
        if part is None:
            return
        before = part.mtime
        part.write(inside, nbytes, value)
        for other in self.parts:
            if other is not part:
                other.shift(part.mtime - before)

    def _part(self, offset: int) -> tuple[HartClint | None, int]:
        """Whose register is at *offset*, and where it would be if the CLINT were this hart's only."""
        if offset >= MTIME:
            return self.reading, offset
        first, size = (MTIMECMP, _MTIMECMP_SIZE) if offset >= MTIMECMP else (MSIP, _MSIP_SIZE)
        index, rest = divmod(offset - first, size)
        return (self.parts[index] if index < len(self.parts) else None), first + rest
