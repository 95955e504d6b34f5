"""The intervals of a page: how long each call of the functions took in which most instructions ran, and each trap."""

from collections.abc import Iterator

from rvtrace_gdb.reports.html.histograms import IntervalFigures
from rvtrace_gdb.reports.html.timeline import INSTRUCTIONS, TICKS
from rvtrace_gdb.reports.intervals.statistics import statistics_of_counts
from rvtrace_gdb.reports.profile.measured import measured_rows
from rvtrace_gdb.reports.profile.model import Profile


def interval_figures(profile: Profile, hart: str = "") -> Iterator[IntervalFigures]:
    """Yield the figures of the intervals of a profile, in ticks where these are known, else in instructions. *hart*: is
    put in front of their names.
    """
    for name, _, tally in measured_rows(profile):
        unit, lengths = (TICKS, tally.ticks) if tally.ticks else (INSTRUCTIONS, tally.instructions)
        found = statistics_of_counts(lengths)
        if found is not None:
            unmeasured = tally.unmeasured + sum(tally.instructions.values()) - found.measured
            yield IntervalFigures(
                hart + name, unit, found.measured, unmeasured, found.least, found.mean, found.greatest,
                found.percentiles, [(it.first, it.last, it.times) for it in found.histogram],
            )  # fmt: skip
