"""The methods of the session protocol for lists: events between rows, all harts in one list, pages, a window.

| method           | params                              | result                                                      |
|------------------|-------------------------------------|-------------------------------------------------------------|
| between          | begin, end, hart, times             | [[number, [[kind, text, place], ...], time, ticks], ...]    |
| interleaved      | context, args, size, at             | as history, of all harts in one list; at: number of the     |
|                  |                                     | context's hart, if it is in the past                        |
| interleaved_rows | begin, end, hart, events, times     | [[number, hart, rows, events as in between], ...]           |

between: the events before each of the rows *begin* to *end* - 1 (see `session.queries.rows`) of the history that was
decoded last; with *times* also timestamps. interleaved_rows: runs of rows of one hart; *number* is that of their first
row in the list, the rows have the hart's own numbers. *hart* is that of the answer to interleaved, and identifies the
list.

The method page is for programs that show parts of lists and refresh them, such as IDEs. It does not change the place
where the user's next `trace history` continues.

    page {context, what, begin, count, ...} -> {length, begin, hart, lines, rows, overwritten, comes}

what    history, functions, calls (with *depth*, 0: all levels), or events, gaps, executions as for `find`
begin   the number of the first row; null: the newest *count* rows, of calls the first
rows    as in `rows`, `function_rows`, `call_rows` and `found`
overwritten  whether older trace was overwritten
comes   of executions, with *pc*, the hart's live pc: whether the instruction there would be one more execution

The method glance is for a window that is refreshed often: it returns how much there is to show. It does not count lines
as reported to the user, and does not change the place where `trace history` continues.

    glance {context, most, anew} -> {length, gaps, hart, current, unread, problem}

*most*: how many bytes may be read out of the target for this, null: nothing is read out. *anew*: the program has
changed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded, Listing
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.lists import Interleaved, SelectedHistory, functions_of
from rvtrace_gdb.session.queries import rows as queries_rows
from rvtrace_gdb.session.queries.rows import annotations, rows
from rvtrace_gdb.session.queries.search import Executions
from rvtrace_gdb.session.rpc.protocol import ROWS_AT_MOST, BadRequest, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError


def _between(session: Session, params: Params, progress: Progress) -> Any:
    begin, end = params.page("between")
    it = _last(session, params.optional_number("hart"))
    return list(annotations(it.history, it.program, begin, end, times=params.given("times")))


def _interleaved(session: Session, params: Params, progress: Progress) -> Any:
    context, at = params.context(), params.optional_number("at")
    decoded = session.harts(context, progress)
    shown = _shown(session, decoded, context, progress)
    histories = decoded.harts.histories
    found = session.cached(Interleaved, histories[shown], lambda: Interleaved(histories))
    hart = decoded.harts.number(context.hart, context.thread_hart)
    place = (hart, at) if at is not None and len(histories[hart]) else None
    selection = found.select(params.text("args", ""), params.size(), place)
    return Listing(*selection, session.warnings() + found.notes(), shown)._asdict()


def _interleaved_rows(session: Session, params: Params, progress: Progress) -> Any:
    begin, end = params.page("interleaved_rows")
    it = _last(session, params.number("hart"))
    found = session.cached(Interleaved, it.history, _nothing)
    answer = []
    for run in found.runs(begin, end):
        history, first, last = found.histories[run.hart], run.begin, run.end
        said = (
            annotations(history, it.program, first, last, times=params.given("times")) if params.given("events") else ()
        )
        answer.append((run.number, run.hart, list(rows(history, it.program, first, last)), list(said)))
    return answer


def _shown(session: Session, decoded: Decoded, context: Context, progress: Progress) -> int:
    """Return a hart whose history is not empty. Raises as `Session.history` if there is none."""
    for hart, history in decoded.harts.histories.items():
        if len(history):
            return hart
    return session.selected(context, progress).hart  # raises the reason why there is nothing


def _last(session: Session, hart: int | None) -> SelectedHistory:
    """Return the history that was decoded last. Raises NoTrace."""
    it = session.last_selected(Context(hart=hart))
    return it if it is not None else _nothing()


def _nothing() -> Any:
    raise NoTrace("no history has been requested yet")


class _List(NamedTuple):
    """The number of rows, and a function that returns the rows from a number (inclusive) to another (exclusive)."""

    length: int
    rows: Callable[[int, int], Sequence[Any]]


def page(session: Session, params: Params, progress: Progress) -> Any:
    """Return a page of a list, see the module. Raises BadRequest, and as `Session.history`."""
    begin, count = params.optional_number("begin"), params.number("count")
    if count > ROWS_AT_MOST or begin == 0:
        raise BadRequest(f"page: at most {ROWS_AT_MOST} from 1 on can be requested at once")
    it = session.selected(params.context(), progress)
    what = params.text("what")
    found = _LISTS.get(what, _found_list)(session, it, params, progress)
    if begin is None:
        begin = 1 if what == "calls" else max(found.length - count + 1, 1)
    end = min(begin + count, found.length + 1)
    page_rows = list(found.rows(begin, end)) if begin < end else []
    return {
        "length": found.length, "begin": begin, "hart": it.hart, "lines": it.lines, "rows": page_rows,
        "overwritten": it.overwritten, "comes": _comes(session, it, params),
    }  # fmt: skip


def _comes(session: Session, it: SelectedHistory, params: Params) -> bool:
    """Return whether the next instruction of the live target is another execution; a capture has no next one."""
    pc = params.optional_number("pc")
    question = params.question() if pc is not None and session.live is not None else None
    return isinstance(question, Executions) and pc is not None and question.comes(pc, it.history, it.program)


def _history_list(session: Session, it: SelectedHistory, params: Params, progress: Progress) -> _List:
    return _List(len(it.history), lambda begin, end: list(queries_rows.rows(it.history, it.program, begin, end)))


def _functions_list(session: Session, it: SelectedHistory, params: Params, progress: Progress) -> _List:
    functions = functions_of(session, it, progress)
    lines = params.given("lines")
    return _List(len(functions), lambda begin, end: functions.rows(begin, end, lines=lines))


def _calls_list(session: Session, it: SelectedHistory, params: Params, progress: Progress) -> _List:
    functions = functions_of(session, it, progress)
    return _List(functions.tree(params.number("depth"), progress), functions.tree_rows)


def _found_list(session: Session, it: SelectedHistory, params: Params, progress: Progress) -> _List:
    found = session.lists.answer(params.question(), it, progress)
    return _List(len(found), found.rows)


_LISTS: Mapping[str, Callable[[Session, SelectedHistory, Params, Progress], _List]] = {
    "history": _history_list,
    "functions": _functions_list,
    "calls": _calls_list,
}


def _glance(session: Session, params: Params, progress: Progress) -> Any:
    """Return how much there is to show. An error does not hide what was read before.

    length   rows of the history, 0 for none; *gaps* of them are gaps
    current  nothing ran since the trace was read out
    unread   about how many bytes have not been read out; 0 if this was not determined
    problem  the error because of which something is missing
    """
    context, most = params.context(), params.optional_number("most")
    unread, problem = 0, None
    if most is not None:
        try:
            unread = _bring_up_to_date(session, context, most, params.given("anew"), progress)
        except Cancelled:
            raise
        except RvtraceError as error:
            problem = str(error)
    return {**_at_hand(session, context), "unread": unread, "problem": problem}


def _bring_up_to_date(session: Session, context: Context, most: int, anew: bool, progress: Progress) -> int:
    """Read the trace out and decode it, unless that takes more than *most* bytes: return their number then, else 0."""
    known = session.last_selected(context)
    if known is not None and len(known.history) and not anew and session.is_current(context):
        return 0
    unread = session.unread(context)
    if unread > most:
        return unread
    session.harts(context, progress)
    found = session.last_selected(context)
    if found is not None and not len(found.history):
        session.selected(context, progress)  # raises the reason
    return 0


def _at_hand(session: Session, context: Context) -> dict[str, Any]:
    found = session.last_selected(context)
    if found is None:
        return {"length": 0, "gaps": 0, "hart": None, "current": False}
    return {
        "length": len(found.history),
        "gaps": found.history.gaps,
        "hart": found.hart,
        "current": session.is_current(context),
    }


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {
    "between": _between,
    "interleaved": _interleaved,
    "interleaved_rows": _interleaved_rows,
    "page": page,
    "glance": _glance,
}
