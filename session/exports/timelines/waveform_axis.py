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


def waveform_axis(form: str, traces: Sequence[ExportedTrace]) -> WaveformAxis:
    """Return the axis for the parts of some harts. Raises TooManyInstructions."""
    number = sum(len(trace.part) for trace in traces)
    if number > MOST:
        raise TooManyInstructions(form, number)
    without = sum(not trace.history.times for trace in traces)
    back = sum(_goes_back(trace.history) for trace in traces)
    if without or back:
        return WaveformAxis(0, _SCALES[1], {BACK: back})
    all_times = [_known_times(trace.history, trace.part) for trace in traces]
    needed = max((_steps(times) for times in all_times), default=1)
    latest = max(times[-1].time + 1 for times in all_times)
    scale = next((scale for scale in _SCALES if scale >= needed), 0)
    if not scale or (latest + number) * scale > _FURTHEST:
        return WaveformAxis(0, _SCALES[1], {TOO_FAR: len(traces)})
    return WaveformAxis(scale, _SCALES[scale], {})


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
