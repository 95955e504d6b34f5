"""The profile of one hart's history, or of a part of it."""

from bisect import bisect_left

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.reports.intervals.tallies import add_intervals
from rvtrace_gdb.reports.profile import call_nodes, counted, gap_tallies, trap_tallies
from rvtrace_gdb.reports.profile.call_nodes import NodeTimes
from rvtrace_gdb.reports.profile.in_order import in_order
from rvtrace_gdb.reports.profile.model import HartTotals, Profile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import Progress, silent


def hart_profile(
    calls: CallHistory,
    hart: int = 0,
    *,
    capture: str = "",
    positions: range | None = None,
    trace_bytes: int | None = None,
    intervals: bool = False,
    progress: Progress = silent,
) -> Profile:
    """Return the profile of what ran on a hart.

    calls        the functions that ran in its history
    capture      the name of its file, where there are several
    positions    the part of the history that counts, None: all of it. Calls that were under way before are known
    trace_bytes  the size of the trace, None if that is not known: how much an unfinished loss is of it
    intervals    how long calls and traps took is wanted, too, which takes longer

    No instruction is looked at twice: what follows from a step of the call history counts as often as it was taken.
    Raises what *progress* raises.
    """
    history = calls.history
    positions = range(len(history)) if positions is None else positions
    profile, gaps = Profile(), sum(gap in positions for gap in history.gap_positions)
    places, times = CodePlaces(profile), NodeTimes()
    profile.harts = [HartTotals(capture, hart, len(positions) - gaps, gaps)]
    if len(positions):
        steps = calls.steps(progress) if len(positions) == len(history) else calls.steps_between(positions, progress)
        counted.count_code(profile, places, calls, steps, positions, progress)
        times = call_nodes.build(profile, places, calls, steps, positions, progress)
        profile.harts = [profile.harts[0]._replace(ticks=_ticks(calls, positions), timed=times.timed)]
    trap_tallies.add_traps(profile, calls, positions, progress)
    gap_tallies.add_gaps(profile, places, calls, positions, trace_bytes, progress)
    if intervals and len(positions):
        add_intervals(profile, places, calls, positions, progress)
    profile, times = in_order(profile, times)
    call_nodes.add_times(profile.tree, times)
    return profile


def _ticks(calls: CallHistory, positions: range) -> int | None:
    """Return the ticks from the first known time to the last one, None without times."""
    known_at, known = calls.history.times.arrays
    first, end = bisect_left(known_at, positions.start), bisect_left(known_at, positions.stop)
    return known[end - 1] - known[first] if first < end else None
