"""The methods of the session protocol for lists, which are shown in pages, and for a window.

| method | params                              | result                                                                |
|--------|-------------------------------------|-----------------------------------------------------------------------|
| page   | context, what, the range, and       | `list_rows.Page`: which rows are shown, and the first                 |
|        | those of the list                   | `ROWS_AT_ONCE` of them                                                |
| rows   | what, begin, end, hart, and those   | {rows, events}: more rows of the list that was requested last         |
|        | of the list                         |                                                                       |
| glance | context, most, anew                 | {length, gaps, hart, current, unread, problem}                        |

The range is *args* and *size*: a RANGE as the user types it and how many rows a page has, 0 for all; where the page
ends, the user's next one begins. With *anew*, of searches and accesses, the first page is shown again; with *since*, of
events, gaps and executions, it begins with the first row at or after the instruction of that number. Programs that
show parts of lists, such as IDEs, send *begin* and *count* instead, which does not change that place: *begin* null
means the newest *count* rows, of calls the first.

| what         | rows              | further params                                                                    |
|--------------|-------------------|-----------------------------------------------------------------------------------|
| history      | `ShortHistoryRow` | *events*: also what happened before the rows, with *times* timestamps, too; *at*: |
|              |                   | the number of the context's hart, if it is in the past                            |
| interleaved  | `HartRows`        | the same; all harts in one list                                                   |
| messages     | `MessageRow`      | *offset*: begin with the message that contains this byte; *raw*: with the bytes   |
| accesses     | `AccessRow`       | *where*: [address, size], only accesses to this memory                            |
| events, gaps | `FoundRow`        | *kinds* of events, see `session.queries.search`                                   |
| executions   | `FoundRow`        | *name*, *first*, *last*, *others*, *function*, *functions*, see                   |
|              |                   | `session.queries.executions`; *also*: objects of these, more places in one list;  |
|              |                   | *pc*: of the live hart, for `Page.comes`                                          |
| functions    | `FunctionRow`     | *lines*: with the addresses of the instructions                                   |
| calls        | `CallRow`         | *depth*: how many levels, 0 for all                                               |
|              |                   | *fold*, of these and of events: what repeats itself is shown once                 |
| records      | objects           | *access*: see `session.target.csr_access`; row 1 is entry 0, see `ctr_records`    |

More rows of a history are those of what was decoded last, of any *hart*; nothing is read out for them.

The method glance is for a window that is refreshed often: it returns how much there is to show. It does not count lines
as reported to the user. *most*: how many bytes may be read out of the target for this, null: nothing is read out.
*anew*: the program has changed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE, Annotation, HartRows, Page
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.lists import Interleaved, SelectedHistory, functions_of
from rvtrace_gdb.session.queries.executions import Executions
from rvtrace_gdb.session.queries.folding import Folding
from rvtrace_gdb.session.queries.functions import Functions
from rvtrace_gdb.session.queries.rows import RangeError, Selection, annotations
from rvtrace_gdb.session.queries.rows import rows as history_rows
from rvtrace_gdb.session.queries.search import NO_GAPS_SINCE, Found, Gaps, Question
from rvtrace_gdb.session.rpc.protocol import ROWS_AT_MOST, BadRequest, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError

Fetch = Callable[[int, int], Sequence[Any]]
"""Returns the rows from a number (inclusive) to another (exclusive)."""


class PagedList(NamedTuple):
    """A list, and which of its rows are shown. *events*: what happened before rows, of lists that have that.

    The other attributes are those of `rows.list_rows.Page`.
    """

    length: int
    selection: Selection
    rows: Fetch
    lines: list[str]
    hart: int | None
    events: Callable[[int, int], Sequence[Annotation]] | None = None
    overwritten: bool = False
    comes: bool = False
    now: Mapping[str, Any] | None = None
    folding: Folding | None = None

    def fetch(self, begin: int, end: int) -> dict[str, Any]:
        """Return the rows numbered *begin* to *end* - 1, and what happened before them."""
        shown = begin < end
        events = self.events(begin, end) if self.events is not None and shown else []
        return {"rows": list(self.rows(begin, end)) if shown else [], "events": list(events)}

    def page(self, most: int) -> Page:
        """Return the answer, with at most *most* rows."""
        begin, end, notice = self.selection
        about = (self.length, notice, self.lines, self.overwritten, self.comes, self.now)
        if self.folding is not None:
            rows = [row for part in self.folding.numbers for row in self.rows(*part)]
            return Page(begin, end, self.hart, rows, [], *about, self.folding.folds)
        shown = self.fetch(begin, min(end, begin + most))
        return Page(begin, end, self.hart, shown["rows"], shown["events"], *about)


class Range(NamedTuple):
    """The part of a list that is requested: *args* and *size*, or *most* rows from *begin* on; see the module."""

    args: str
    size: int
    begin: int | None = None
    most: int | None = None

    @classmethod
    def of(cls, params: Params) -> "Range":
        """Return the range in a request. Raises BadRequest."""
        if not params.given("count") and not params.given("begin"):
            return cls(params.text("args", ""), params.size())
        begin, most = params.optional_number("begin"), params.number("count")
        if most > ROWS_AT_MOST or begin == 0:
            raise BadRequest(f"page: at most {ROWS_AT_MOST} from 1 on can be requested at once")
        return cls("", 0, begin, most)

    def select(self, length: int, by_user: Callable[[str, int], Selection]) -> Selection:
        """Return which of *length* rows are shown. *by_user*: selects what the user's RANGE means."""
        return by_user(self.args, self.size) if self.most is None else self.by_number(length)

    def is_first(self, params: Params) -> bool:
        """Return whether what is requested is not the page after, or before, another one."""
        return params.given("anew") or bool(params.given("since")) or self.args not in ("", "+", "-") or not self.size

    def by_number(self, length: int) -> Selection:
        """Return which of *length* rows a program has requested by their numbers."""
        most = self.most or 0
        begin = max(length - most + 1, 1) if self.begin is None else self.begin
        return Selection(begin, min(begin + most, length + 1))


def _folded(
    found: Found | Functions, params: Params, asked: Range, rows: Fetch
) -> tuple[Selection, Folding | None]:
    """Return the page that is requested, and what is folded in it, if that is requested and it is a page."""
    if params.given("fold") and asked.most is None and asked.args in ("", "+", "-") and asked.size and len(found):
        folding = Folding(rows, len(found))
        return found.turn(asked.args, asked.size, folding), folding
    return asked.select(len(found), found.select), None


def page(session: Session, params: Params, progress: Progress) -> Any:
    """Return a part of a list, see the module. Raises BadRequest, RangeError, and as `Session.history`."""
    what, asked = params.choice("what", LISTS), Range.of(params)
    found = LISTS[what](session, params, asked, progress)
    if what not in _AT_HAND:
        session.last[what] = found
    return found.page(ROWS_AT_ONCE if asked.most is None else asked.most)._asdict()


def rows(session: Session, params: Params, progress: Progress) -> Any:
    """Return more rows of the list that was requested last. Raises BadRequest, NoTrace."""
    what = params.choice("what", LISTS)
    begin, end = params.page("rows")
    if what in _AT_HAND:
        found = _AT_HAND[what](session, params)
    elif what in session.last:
        found = session.last[what]
    else:
        raise NoTrace("no list has been requested yet")
    return found.fetch(begin, end)


def _history(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    context, at = params.context(), params.optional_number("at")
    if asked.most is not None:
        it = session.selected(context, progress)
        return _of_history(it, asked.by_number(len(it.history)), params, len(it.history))
    at = session.number_of_selected_hart(context) if at is None else at
    it, selection = session.history_page(asked.args, asked.size, context, progress, at)
    return _of_history(it, selection, params, session.require_capture().lengths[it.hart])


def _history_at_hand(session: Session, params: Params) -> PagedList:
    return _of_history(_last(session, params.optional_number("hart")), Selection(1, 1), params)


def _of_history(it: SelectedHistory, selection: Selection, params: Params, length: int = 0) -> PagedList:
    """Return the rows of one history, with what happened before them if that is requested."""
    times = params.given("times")

    def fetch(begin: int, end: int) -> Sequence[Any]:
        return list(history_rows(it.history, it.program, begin, end))

    def events(begin: int, end: int) -> Sequence[Annotation]:
        return list(annotations(it.history, it.program, begin, end, times=times))

    what_happened = events if params.given("events") else None
    return PagedList(length, selection, fetch, it.lines, it.hart, what_happened, it.overwritten)


def _interleaved(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    context, at = params.context(), params.optional_number("at")
    decoded = session.harts(context, progress)
    histories = decoded.harts.histories
    shown = next((hart for hart, history in histories.items() if len(history)), None)
    if shown is None:
        shown = session.selected(context, progress).hart  # raises the reason why there is nothing
    found = session.cached(Interleaved, histories[shown], lambda: Interleaved(histories))
    hart = decoded.harts.number(context.hart, context.thread_hart)
    place = (hart, at) if at is not None and len(histories[hart]) else None
    selection = asked.select(len(found), partial(found.select, at=place))
    lines = session.warnings() + found.notes()
    return _of_all_harts(found, _last(session, shown), params, selection)._replace(lines=lines)


def _interleaved_at_hand(session: Session, params: Params) -> PagedList:
    it = _last(session, params.optional_number("hart"))
    return _of_all_harts(session.cached(Interleaved, it.history, _nothing), it, params, Selection(1, 1))


def _of_all_harts(found: Interleaved, it: SelectedHistory, params: Params, selection: Selection) -> PagedList:
    """Return the rows of the histories of all harts. *it*: one of them."""

    def fetch(begin: int, end: int) -> list[HartRows]:
        return [of_hart(*run) for run in found.runs(begin, end)]

    def of_hart(number: int, hart: int, begin: int, end: int) -> HartRows:
        one = it._replace(history=found.histories[hart], hart=hart)
        return HartRows(number, hart, **_of_history(one, selection, params).fetch(begin, end))

    return PagedList(len(found), selection, fetch, it.lines, it.hart, overwritten=it.overwritten)


def _last(session: Session, hart: int | None) -> SelectedHistory:
    """Return the history that was decoded last. Raises NoTrace."""
    it = session.last_selected(Context(hart=hart))
    return it if it is not None else _nothing()


def _nothing() -> Any:
    raise NoTrace("no history has been requested yet")


def _messages(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    def select(args: str, size: int) -> Selection:
        listing = session.dump(args, size, params.context(), params.optional_number("offset"), progress)
        lines.extend(listing.lines)
        return Selection(*listing[:3])

    lines: list[str] = []
    selection = asked.select(0, select)
    rows = partial(session.messages, raw=params.given("raw"))
    return PagedList(len(session.require_capture().messages()), selection, rows, lines, params.context().hart)


def _accesses(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    it = session.selected_or_empty(params.context(), progress)
    found = session.lists.accesses(it, params.place("where"))
    if params.given("anew"):
        found.restart()
    selection = asked.select(len(found), found.select)
    return PagedList(len(found), selection, found.rows, it.lines, it.hart)


def _found(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    """Return the results of a search. By number, a history is needed; the user is told that it is empty."""
    question, context = params.question(), params.context()
    select = session.selected_or_empty if asked.most is None else session.selected
    it = select(context, progress)
    found = session.lists.answer(question, it, progress)
    asked = _since(found, params, asked)
    selection, folding = _folded(found, params, asked, found.rows)
    if asked.most is None and not len(found):
        selection = selection._replace(notice=_nothing_found(question, found, it))
    notes = [f"note:     {it.unless_earlier(note)}" for note in found.notes] if asked.is_first(params) else []
    pc = params.optional_number("pc") if session.live is not None else None  # a capture has no next instruction
    comes = isinstance(question, Executions) and pc is not None and question.comes(pc, it.history, it.program)
    lines = [*it.lines, *notes]
    return PagedList(len(found), selection, found.rows, lines, it.hart, None, it.overwritten, comes, folding=folding)


def _nothing_found(question: Question, found: Found, it: SelectedHistory) -> str:
    return NO_GAPS_SINCE if isinstance(question, Gaps) and it.overwritten else it.unless_earlier(found.none)


def _since(found: Found, params: Params, asked: Range) -> Range:
    """Return the range with its beginning where the request wants it: anew, or at an instruction. Raises RangeError."""
    since = params.optional_number("since")
    if since is None or not len(found):
        if params.given("anew"):
            found.restart()
        return asked
    begin = found.number_from(since)
    if begin > len(found) and asked.most is None:
        raise RangeError(f"-from {since}: the last of this list is at @{found.position(len(found)) + 1}")
    if asked.most is None:
        found.restart(begin)
        return asked
    return asked._replace(begin=begin)


def _functions(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    it = session.selected(params.context(), progress)
    functions = functions_of(session, it, progress)
    rows = partial(functions.rows, lines=params.given("lines"))
    selection, folding = _folded(functions, params, asked, rows)
    return PagedList(len(functions), selection, rows, it.lines, it.hart, overwritten=it.overwritten, folding=folding)


def _calls(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    depth = params.number("depth")
    it = session.selected(params.context(), progress)
    functions = functions_of(session, it, progress)
    length = functions.tree(depth, progress)
    asked = asked._replace(begin=asked.begin or 1)
    selection = asked.select(length, lambda args, size: Selection(1, length + 1))
    return PagedList(length, selection, functions.tree_rows, it.lines, it.hart, overwritten=it.overwritten)


def _records(session: Session, params: Params, asked: Range, progress: Progress) -> PagedList:
    from rvtrace_gdb.session.queries import ctr_records  # not before there are records
    from rvtrace_gdb.session.sources.ctr_commands import let_go
    from rvtrace_gdb.session.target.csr_access import resolved

    context = params.context()
    try:
        access = resolved(params.table("access"), context) if params.given("access") else None
        found, lines = ctr_records.shown(session, context, access, progress)
    finally:
        let_go(session)
    selection = asked.select(len(found), found.select)
    return PagedList(len(found), selection, found.rows, lines, found.records.hart, now=found.since())


LISTS: Mapping[str, Callable[[Session, Params, Range, Progress], PagedList]] = {
    "history": _history,
    "interleaved": _interleaved,
    "messages": _messages,
    "accesses": _accesses,
    **dict.fromkeys(("events", "gaps", "executions"), _found),
    "functions": _functions,
    "calls": _calls,
    "records": _records,
}
"""The lists by their names in a request; `rows.list_rows.ROWS` has the types of their rows."""
_AT_HAND: Mapping[str, Callable[[Session, Params], PagedList]] = {
    "history": _history_at_hand,
    "interleaved": _interleaved_at_hand,
}
"""Lists of which more rows are taken from what was decoded last: they do not keep an older history in memory."""


def _glance(session: Session, params: Params, progress: Progress) -> Any:
    """Return how much there is to show. An error does not hide what was read before.

    length   rows of the history, 0 for none
    gaps     how many of them are gaps
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


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {"page": page, "rows": rows, "glance": _glance}
