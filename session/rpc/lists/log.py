"""The lists `log` and `calls-of` of the session protocol: what a dprintf would have printed, and calls of a function.

They are shown in pages, as others are.

*where*: the parameters of a search, as the list `executions` has them; of a function, the place of its breakpoint
counts. *expressions*: texts, the first of which may be a format in quotes. *condition*: "" for none. *letter*: as in
`print /x`. *numbers*, a RANGE of `trace history`, or *time*, "T" or "FIRST,LAST" in ticks: only what ran there.

Of the calls of a function there are *where*, which must be one, and *numbers* or *time*.
"""

from collections.abc import Sequence

from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.queries.lists.search import BadQuery
from rvtrace_gdb.session.questions.calls_of.query import CallsOfQuery
from rvtrace_gdb.session.questions.log.places import breakpoints
from rvtrace_gdb.session.questions.log.query import LogQuery, LogRequest, LogTools
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def calls_of_query(session: Session, params: Params, progress: Progress) -> tuple[CallsOfQuery, SelectedHistory]:
    """Return whose calls are listed, in which history. Raises as `log_query`, and BadQuery."""
    selected = session.selected(params.context(), progress)
    tools, where = _tools(session, selected), params.execution_query("where")
    functions = (where.first, *(where.functions if where.function else where.others))
    programs = {id(it): it for it in map(selected.program.image_of, selected.history.program_contexts)}.values()
    if where.last is not None or not all(any(it.function(at) == at for it in programs) for at in functions):
        raise BadQuery(f"{where.name} is no function that can be called")
    stops = breakpoints(where._replace(function=True, functions=functions[1:], others=()), tools)
    past = past_of(session, selected, progress)
    query = CallsOfQuery(where.name, functions, (stops.first, *stops.others), _part(params, selected), past, tools)
    return query, selected


def _part(params: Params, selected: SelectedHistory) -> range | None:
    """Return the positions that a request is about. Raises RangeError, BadTime."""
    part = HistoryPart(params.text("numbers", ""), params.text("time", ""))
    part.check(1)
    return part.positions(selected) if any(part) else None


def log_query(session: Session, params: Params, progress: Progress) -> tuple[LogQuery, SelectedHistory]:
    """Return what is logged, and of which history. Raises BadRequest, RangeError, BadTime, and as `Session.history`."""
    context = params.context()
    selected = session.selected(context, progress)
    tools = _tools(session, selected)
    expressions: Sequence[str] = params.texts("expressions")
    request = LogRequest(tuple(expressions), params.text("condition", ""), params.text("letter", ""))
    part = _part(params, selected)
    where = breakpoints(params.execution_query("where"), tools)
    return LogQuery(where, request, part, past_of(session, selected, progress), tools), selected


def _tools(session: Session, selected: SelectedHistory) -> LogTools:
    return session.cached(LogTools, selected.history, lambda: LogTools(selected.program.all_programs))


def inlined_places(session: Session, params: Params, name: str) -> Sequence[int]:
    """Return where code of a function begins that is part of others. Raises as `Session.selected_or_empty`."""
    tools = _tools(session, session.selected_or_empty(params.context()))
    return tools.evaluator.program.inlined_entries(name)
