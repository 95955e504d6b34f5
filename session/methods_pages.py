"""A method of the session protocol for programs that show parts of lists and refresh them by themselves, as IDEs do.

    page {context, what, begin, count, ...} -> {length, begin, hart, lines, rows, overwritten, comes}

what    history, functions, calls (with *depth*, 0: all levels), or events, gaps, executions as for `find`
begin   the number of the first row; null: the newest *count*, of calls the first
rows    as of `rows`, `function_rows`, `call_rows` and `found`
overwritten  whether there was older trace, of which nothing is left
comes   of executions, with *pc*, where the hart stands in the present: whether what runs there next would be one more

It leaves the place from which a `trace history` that the user types goes on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.session import rows
from rvtrace_gdb.session.finding import Executions
from rvtrace_gdb.session.frames import functions_of
from rvtrace_gdb.session.params import ROWS_AT_MOST, BadRequest, Params
from rvtrace_gdb.session.session import Selected, Session
from rvtrace_gdb.support.progress import Progress


class _List(NamedTuple):
    """How many rows there are, and those numbered from one (inclusive) to another (exclusive)."""

    length: int
    rows: Callable[[int, int], Sequence[Any]]


def page(session: Session, params: Params, progress: Progress) -> Any:
    """See the module. Raises BadRequest, and as `Session.history`."""
    begin, count = params.optional_number("begin"), params.number("count")
    if count > ROWS_AT_MOST or begin == 0:
        raise BadRequest(f"page: at most {ROWS_AT_MOST} from 1 on can be asked for at once")
    it = session.selected(params.context(), progress)
    what = params.text("what")
    found = _LISTS.get(what, _found)(session, it, params, progress)
    if begin is None:
        begin = 1 if what == "calls" else max(found.length - count + 1, 1)
    end = min(begin + count, found.length + 1)
    page_rows = list(found.rows(begin, end)) if begin < end else []
    return {
        "length": found.length, "begin": begin, "hart": it.hart, "lines": it.lines, "rows": page_rows,
        "overwritten": it.overwritten, "comes": _comes(session, it, params),
    }  # fmt: skip


def _comes(session: Session, it: Selected, params: Params) -> bool:
    """Of a capture file nothing is known of what ran next."""
    pc = params.optional_number("pc")
    question = params.question() if pc is not None and session.live is not None else None
    return isinstance(question, Executions) and pc is not None and question.comes(pc, it.history, it.program)


def _history(session: Session, it: Selected, params: Params, progress: Progress) -> _List:
    return _List(len(it.history), lambda begin, end: list(rows.rows(it.history, it.program, begin, end)))


def _functions(session: Session, it: Selected, params: Params, progress: Progress) -> _List:
    functions = functions_of(session, it, progress)
    lines = params.given("lines")
    return _List(len(functions), lambda begin, end: functions.rows(begin, end, lines=lines))


def _calls(session: Session, it: Selected, params: Params, progress: Progress) -> _List:
    functions = functions_of(session, it, progress)
    return _List(functions.tree(params.number("depth"), progress), functions.tree_rows)


def _found(session: Session, it: Selected, params: Params, progress: Progress) -> _List:
    found = session.lists.answer(params.question(), it, progress)
    return _List(len(found), found.rows)


_LISTS: Mapping[str, Callable[[Session, Selected, Params, Progress], _List]] = {
    "history": _history,
    "functions": _functions,
    "calls": _calls,
}
METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {"page": page}
