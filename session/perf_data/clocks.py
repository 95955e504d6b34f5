"""The clocks of a recording: how timestamps of the trace become times of perf's events (TIME_CONV), and when these were
by the wall clock (CLOCK_DATA).

Source: Linux, tools/lib/perf/include/perf/event.h, "struct perf_record_time_conv"; include/uapi/linux/perf_event.h,
"cap_usr_time_zero" and "cap_usr_time_short"; tools/perf/Documentation/perf.data-file-format.txt, HEADER_CLOCK_DATA.
"""

import struct
from datetime import UTC, datetime
from typing import NamedTuple

from rvtrace_gdb.session.perf_data.records import PerfRecord, RecordReader

_MOST_SHIFT = 63
_CLOCKS = {0: "CLOCK_REALTIME", 1: "CLOCK_MONOTONIC", 4: "CLOCK_MONOTONIC_RAW", 7: "CLOCK_BOOTTIME", 11: "CLOCK_TAI"}


class TimeConversion(NamedTuple):
    """The time of *ticks*, in nanoseconds, is *zero* + (*ticks* * *mult* >> *shift*). Of a counter with the bits *mask*
    that wraps, *cycles* is a value near all that are converted; a mask of 0: it does not wrap.
    """

    shift: int
    mult: int
    zero: int
    cycles: int = 0
    mask: int = 0

    def nanoseconds(self, ticks: int) -> int:
        """Return the time of a timestamp."""
        if self.mask:
            ticks = self.cycles + ((ticks - self.cycles) & self.mask)
        return self.zero + (ticks * self.mult >> self.shift)


def time_conversion(record: PerfRecord, reader: RecordReader) -> TimeConversion | None:
    """Return what a TIME_CONV record says; None: nothing usable. Raises BadPerfData."""
    shift, mult, zero = (reader.number(record, at, "Q") for at in (0, 8, 16))
    short = len(record.body) >= 42
    has_zero, has_short = (bool(record.body[at]) for at in (40, 41)) if short else (True, False)
    if not mult or shift > _MOST_SHIFT or not has_zero:
        return None
    cycles, mask = (reader.number(record, at, "Q") for at in (24, 32)) if has_short else (0, 0)
    return TimeConversion(shift, mult, zero, cycles, mask)


class WallClock(NamedTuple):
    """What two clocks said at one moment, in nanoseconds: the *wall* clock, and the *clock* of perf's events."""

    clock: int
    wall: int
    at: int

    def text(self, time: int) -> str:
        """Return when a time of perf's events was, in words."""
        seconds, rest = divmod(self.wall + time - self.at, 10**9)
        name = _CLOCKS.get(self.clock, f"clock {self.clock}")
        try:
            found = datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return name
        return f"{found:%Y-%m-%dT%H:%M:%S}.{rest:09}Z, {time} ns of {name}"


def wall_clock(content: bytes, order: str) -> WallClock | None:
    """Return what the feature CLOCK_DATA says; None: nothing usable."""
    if len(content) < 24:
        return None
    _, clock, wall, at = struct.unpack_from(order + "2I2Q", content)
    return WallClock(clock, wall, at)
