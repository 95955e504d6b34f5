"""The methods of the session protocol for listings of instructions with what happened between them.

| method           | params                              | result                                                      |
|------------------|-------------------------------------|-------------------------------------------------------------|
| between          | begin, end, hart, times             | [[number, [[kind, text, place], ...], time, ticks], ...]    |
| interleaved      | context, args, size, at             | as history, of all harts in one list; at: of the context's  |
|                  |                                     | hart, the number where it is in the past                    |
| interleaved_rows | begin, end, hart, events, times     | [[number, hart, rows, as of between], ...]                  |

between: what happened before the rows *begin* to *end* - 1 (see `session.between`) of the history that was decoded
last; with *times* also when. interleaved_rows: pieces of one hart; *number* is that of their first row in the list,
the numbers in the rows are the hart's own. *hart*: as the answer to interleaved has it, which says which list it is.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.session.between import between
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.interleaved import Interleaved
from rvtrace_gdb.session.params import Params
from rvtrace_gdb.session.reading import Decoded, Listing
from rvtrace_gdb.session.rows import rows
from rvtrace_gdb.session.session import Selected, Session
from rvtrace_gdb.support.progress import Progress


def _between(session: Session, params: Params, progress: Progress) -> Any:
    begin, end = params.page("between")
    it = _last(session, params.optional_number("hart"))
    return list(between(it.history, it.program, begin, end, times=params.given("times")))


def _interleaved(session: Session, params: Params, progress: Progress) -> Any:
    context, at = params.context(), params.optional_number("at")
    decoded = session.harts(context, progress)
    shown = _shown(session, decoded, context, progress)
    histories = decoded.harts.histories
    found = session.kept(Interleaved, histories[shown], lambda: Interleaved(histories))
    hart = decoded.harts.number(context.hart, context.thread_hart)
    place = (hart, at) if at is not None and len(histories[hart]) else None
    selection = found.select(params.text("args", ""), params.size(), place)
    return Listing(*selection, session.warnings() + found.notes(), shown)._asdict()


def _interleaved_rows(session: Session, params: Params, progress: Progress) -> Any:
    begin, end = params.page("interleaved_rows")
    it = _last(session, params.number("hart"))
    found = session.kept(Interleaved, it.history, _nothing)
    answer = []
    for run in found.runs(begin, end):
        history, first, last = found.histories[run.hart], run.begin, run.end
        said = between(history, it.program, first, last, times=params.given("times")) if params.given("events") else ()
        answer.append((run.number, run.hart, list(rows(history, it.program, first, last)), list(said)))
    return answer


def _shown(session: Session, decoded: Decoded, context: Context, progress: Progress) -> int:
    """A hart of which there is something. Raises as `Session.history` where there is none."""
    for hart, history in decoded.harts.histories.items():
        if len(history):
            return hart
    return session.selected(context, progress).hart  # which raises why there is nothing


def _last(session: Session, hart: int | None) -> Selected:
    """What was decoded last."""
    it = session.at_hand(Context(hart=hart))
    return it if it is not None else _nothing()


def _nothing() -> Any:
    raise NoTrace("no history was asked for yet")


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {
    "between": _between,
    "interleaved": _interleaved,
    "interleaved_rows": _interleaved_rows,
}
