"""From positions of a history to the times of a waveform viewer, and back.

The places of `exports.timelines.waveform_axis` are counted in the units that a viewer has: those of the file that
rvtrace has exported, or of another one, in which a tick of the trace takes *scale* units and time 0 is at *offset*.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.exports.timelines.waveform_axis import TOO_FAR, WaveformAxis, axis_of
from rvtrace_gdb.session.waves.waveform_file import WaveformFile

_STEPS = {-9: 1, -12: 10**3, -15: 10**6}
"""Places in a tick of an export, by the exponent of its unit: a tick is drawn as a nanosecond."""


class ViewerScale(NamedTuple):
    """Which time of the viewer is time 0 of the trace, and how many units of the viewer a tick takes; or, where the
    trace has no times, an instruction. None: as an export of rvtrace has it.
    """

    offset: Fraction | None = None
    scale: Fraction | None = None


class ViewerAxis(NamedTuple):
    """The times of a viewer, of which *units* are one place of *axis*."""

    axis: WaveformAxis
    offset: Fraction
    units: Fraction

    def time(self, history: History, position: int) -> int:
        """Return the time at which a position is drawn."""
        return math.floor(self.offset + self.units * self.axis.place(history, position))

    def position(self, history: History, time: int) -> int | None:
        """Return the position that is drawn at a time, the last one at or before it; None outside of the history."""
        return self.axis.position(history, math.ceil((time + 1 - self.offset) / self.units) - 1)

    def explained(self) -> str:
        """Return how the times are made, for the user."""
        what = "a tick of the trace" if self.axis.steps else "an instruction"
        scale = self.units * max(self.axis.steps, 1)
        return f"{what} is {scale} of the viewer's units of time, from {self.offset} on"


def viewer_axis(histories: Sequence[History], file: WaveformFile, chosen: ViewerScale) -> ViewerAxis:
    """Return the axis of a viewer that shows a file, for the histories of all harts."""
    axis = axis_of([(history, range(len(history))) for history in histories])
    if file.is_ours:
        axis = _exported(axis, histories, file)
    steps = max(axis.steps, 1)
    scale = chosen.scale
    if scale is None:
        scale = Fraction(1 if file.exponent is not None and not file.is_ours else steps)
    return ViewerAxis(axis, chosen.offset or Fraction(0), scale / steps)


def _exported(axis: WaveformAxis, histories: Sequence[History], file: WaveformFile) -> WaveformAxis:
    """Return the axis of an export, which may have other steps than *axis*, that of all histories."""
    numbers = axis._replace(steps=0)
    if file.is_numbered or not (axis.steps or TOO_FAR in axis.left_out):
        return numbers
    found = axis._replace(steps=_STEPS.get(file.exponent or 0, axis.steps))
    first = min(found.place(history, 0) for history in histories)
    return numbers if file.end is not None and file.end < first else found
