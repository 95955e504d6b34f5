"""The time axis of waveforms: every instruction has a place of its own, in the order in which it ran.

Where the trace has times, a tick is drawn as a nanosecond. What lies between two known times ran at the earlier one, as
everywhere; here these instructions follow it one by one, in fractions of the tick that are so small that all of them
come before the next known time. So the fractions are an order and no times. Without times the axis has the numbers of
instructions, as listings do.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import counted

MOST = 1_000_000
"""So many instructions are written: viewers take what changes so often, some 50 MB."""
BACK = "times, which go back, with instruction numbers in their place,"
TOO_FAR = "times, which leave no room for the instructions between them, with instruction numbers in their place,"
"""What the file does not have, for `Written.left_out`."""
_SCALES = {1: "1 ns", 10**3: "1 ps", 10**6: "1 fs"}
_FURTHEST = 1 << 62


class TooManyInstructions(RvtraceError):
    """A part that is too long to be drawn instruction by instruction. *form*: of the file."""

    def __init__(self, form: str, number: int) -> None:
        super().__init__(
            f"{form}: {counted(number, 'instruction')} would be written one by one, and at most {MOST} are:"
            " choose a part with --range A,B or --time T,T"
        )


class KnownTime(NamedTuple):
    """*time* is that before the instruction at *position*."""

    position: int
    time: int


class WaveformAxis(NamedTuple):
    """*steps*: places in a tick, 0 if the places are numbers of instructions. *timescale*: of a place.

    *left_out*: what the axis does not have, counted.
    """

    steps: int
    timescale: str
    left_out: dict[str, int]

    def places(self, trace: ExportedTrace) -> Iterator[int]:
        """Yield the place of each position of the part; each is greater than the one before."""
        part = trace.part
        if not self.steps:
            yield from range(part.start + 1, part.stop + 1)
            return
        times = _known_times(trace.history, part)
        for at, following in zip(times, [*times[1:], KnownTime(part.stop, 0)], strict=True):
            offset = at.time * self.steps - at.position
            yield from range(
                offset + max(at.position, part.start), offset + min(max(following.position, part.start), part.stop)
            )

    def place(self, history: History, position: int) -> int:
        """Return the place of one position, the same as `places` has."""
        if not self.steps:
            return position + 1
        positions, times = history.times.arrays
        time = times[max(bisect_right(positions, position) - 1, 0)]
        return time * self.steps + position - _begin(history, time)

    def position(self, history: History, place: int) -> int | None:
        """Return the position that ran at a place, the last one at or before it; None outside of the history."""
        length = len(history)
        if not self.steps:
            return place - 1 if 0 < place <= length else None
        positions, times = history.times.arrays
        following = bisect_right(times, place // self.steps)
        if not following or _begin(history, times[following - 1]) >= length:
            return None
        time = times[following - 1]
        position = _begin(history, time) + place - time * self.steps
        end = positions[following] if following < len(times) else length
        if position < min(end, length):
            return position
        return end - 1 if end < length else None


def waveform_axis(form: str, traces: Sequence[ExportedTrace]) -> WaveformAxis:
    """Return the axis for the parts of some harts. Raises TooManyInstructions."""
    number = sum(len(trace.part) for trace in traces)
    if number > MOST:
        raise TooManyInstructions(form, number)
    return axis_of([(trace.history, trace.part) for trace in traces])


def axis_of(parts: Sequence[tuple[History, range]]) -> WaveformAxis:
    """Return the axis for parts of histories, however long they are."""
    back = sum(_goes_back(history) for history, _ in parts)
    if back or not all(history.times for history, _ in parts):
        return WaveformAxis(0, _SCALES[1], {BACK: back})
    all_times = [_known_times(history, part) for history, part in parts]
    needed = max((_steps(times) for times in all_times), default=1)
    latest = max(times[-1].time + 1 for times in all_times)
    scale = next((scale for scale in _SCALES if scale >= needed), 0)
    if not scale or (latest + sum(len(part) for _, part in parts)) * scale > _FURTHEST:
        return WaveformAxis(0, _SCALES[1], {TOO_FAR: len(parts)})
    return WaveformAxis(scale, _SCALES[scale], {})


def _begin(history: History, time: int) -> int:
    """Return the first position at a time that is known: what ran before the first one is taken to be at that."""
    positions, times = history.times.arrays
    index = bisect_left(times, time)
    return positions[index] if index else 0


def _goes_back(history: History) -> bool:
    times = history.times.arrays[1]
    return any(time > following for time, following in pairwise(times))


def _known_times(history: History, part: range) -> list[KnownTime]:
    """Return the different times of a part, each at the first position that has it; the first one is at or before the
    beginning.
    """
    positions, times = history.times.arrays
    begin = bisect_right(positions, part.start) - 1
    end = max(bisect_left(positions, part.stop), 1)
    begin = bisect_left(times, times[max(begin, 0)])
    found = [KnownTime(0 if begin == 0 else positions[begin], times[begin])]
    for number in range(begin + 1, end):
        if times[number] != found[-1].time:
            found.append(KnownTime(positions[number], times[number]))
    return found


def _steps(times: list[KnownTime]) -> int:
    """Return how many places a tick needs."""
    needed = (-(-(after.position - at.position) // (after.time - at.time)) for at, after in pairwise(times))
    return max(needed, default=1)
