"""The method of the session protocol for intervals: `trace intervals`.

    intervals {context, first, last, unit, args, time} -> `rows.intervals.answer.IntervalsAnswer`

From each time the place *first* came to the next time the place *last* came. Without *last*: of the calls of the
function that is *first*, or of the traps that *first* is. A place is an object: *place*, its kind of
`rows.intervals.places`, *cause* of a trap, and for "execution" and "return" the parameters of a search, as in
`session.rpc.lists.pages`. *unit*: "instructions" (default) or "ticks", in which lengths are compared. *args*, a RANGE
of `trace history`, or *time*, "T" or "FIRST,LAST" in ticks: only intervals that begin there; without them: all. Those
that begin in what a task, a process or a thread ran: the parameters are in `session.rpc.lists.parts`.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.reports.intervals.intervals import PositionRanges
from rvtrace_gdb.rows.intervals.answer import INSTRUCTIONS, UNITS
from rvtrace_gdb.session.queries.intervals.answer import MeasuredIntervals
from rvtrace_gdb.session.queries.intervals.query import IntervalQuery
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def intervals(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the intervals, see the module. Raises BadRequest, BadQuery, RangeError, BadTime, and as
    `Session.history`.
    """
    first = params.interval_place("first")
    if first is None:
        raise BadRequest("intervals: first is needed")
    unit = params.choice("unit", UNITS) if params.given("unit") else INSTRUCTIONS
    it = session.selected(params.context(), progress)
    asked = HistoryPart(params.text("args", ""), params.text("time", ""))
    asked.check(1)
    part = asked.positions(it) if any(asked) else None
    query = IntervalQuery(first, params.interval_place("last"), unit, part)
    if params.is_of_part():
        query = _of_part(session, query, it, params, progress)
    calls = call_history(session, it, progress)
    kept = session.cached(MeasuredIntervals, it.history, lambda: MeasuredIntervals(it, calls))
    return kept.answer(query, progress)._replace(lines=it.lines)._asdict()


def _of_part(
    session: Session, query: IntervalQuery, selected: SelectedHistory, params: Params, progress: Progress
) -> IntervalQuery:
    """Return a query for those that begin in what a task, a process or a thread ran. Raises as `parts_asked_for`."""
    from rvtrace_gdb.session.rpc.lists.parts import parts_asked_for  # few intervals are of parts

    found, whose = parts_asked_for(session, selected, params, progress)
    if isinstance(query.part, range):
        within = query.part
        cut = (range(max(it.start, within.start), min(it.stop, within.stop)) for it in found)
        found = [it for it in cut if it]
    return query._replace(part=PositionRanges(tuple(found)), whose=whose)


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"intervals": intervals}
