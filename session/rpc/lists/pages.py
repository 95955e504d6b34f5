"""The methods of the session protocol for lists, which are shown in pages.

| method | params                              | result                                                                |
|--------|-------------------------------------|-----------------------------------------------------------------------|
| page   | context, what, the range, and       | `list_rows.Page`: which rows are shown, and the first                 |
|        | those of the list                   | `ROWS_AT_ONCE` of them                                                |
| rows   | what, begin, end, hart, and those   | {rows, events}: more rows of the list that was requested last         |
|        | of the list                         |                                                                       |

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
| messages     | `MessageRow`      | *offset*: begin with the message that contains this byte                          |
| accesses     | `AccessRow`       | *where*: [address, size], only accesses to this memory                            |
| events, gaps | `FoundRow`        | *kinds* of events, see `session.queries.lists.search`                             |
| executions   | `FoundRow`        | *name*, *first*, *last*, *others*, *function*, *functions*, see                   |
|              |                   | `session.queries.lists.executions`; *also*: objects of these, more places;        |
|              |                   | *pc*: of the live hart, for `Page.comes`                                          |
| log          | `LoggedRow`       | see `session.rpc.lists.log`                                                       |
| calls_of     | `OneCallRow`      | the same                                                                          |
| functions    | `FunctionRow`     | *fold*, of these and of events: what repeats itself is shown once                 |
| calls        | `CallRow`         | *depth*: how many levels, 0 for all                                               |
| differences  | `DifferenceRow`   | those of `session.rpc.lists.diff`                                                 |
| records      | `RecordRow`       | *access*: see `session.target.csr_access`; row 1 is entry 0, see `ctr_records`    |
| why          | `WhyRow`          | *name*, *at*, *register*, *where*, *branches*, *thin*, *depth*, *row*: see        |
|              |                   | `session.rpc.lists.why`                                                           |

History, functions, calls, events, gaps, executions, log and calls_of can be those of a task, a process or a thread
alone: the parameters are in `session.rpc.lists.parts`. Rows are numbered in that list; instructions keep their numbers.

The modifiers of a list that the session computes on request alone are parameters, too, by their words:
`rows.list_text.MODIFIERS`.

More rows of a history are those of what was decoded last, of any *hart*; nothing is read out for them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE, Annotation, HartRows
from rvtrace_gdb.rows.list_text import computed_words
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoFlow, NoTrace
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.functions import FunctionList
from rvtrace_gdb.session.queries.lists.history_rows import annotations
from rvtrace_gdb.session.queries.lists.history_rows import rows as history_rows
from rvtrace_gdb.session.queries.lists.interleaved import Interleaved
from rvtrace_gdb.session.queries.lists.pages import Folding, PageSelection, RangeError, RowFetch
from rvtrace_gdb.session.queries.lists.search import NO_GAPS_SINCE, EventQuery, GapQuery, ListQuery, PagedResults
from rvtrace_gdb.session.rpc.lists.list_selection import ListSelection, Range
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.selected_history import HistoryNumber, SelectedHistory, functions_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def _computed(what: str, params: Params) -> dict[str, bool]:
    """Return which columns that are computed on request alone a request asks for, by the words of their modifiers."""
    return {word: params.given(word) for word in computed_words(what)}


def _folded(
    listed: PagedResults | FunctionList, params: Params, requested: Range, rows: RowFetch
) -> tuple[PageSelection, Folding | None]:
    """Return the page that is requested, and what is folded in it, if that is requested and it is a page."""
    is_page = requested.most is None and requested.args in ("", "+", "-") and requested.size and len(listed)
    if params.given("fold") and is_page:
        folding = Folding(rows, len(listed))
        return listed.turn(requested.args, requested.size, folding), folding
    return requested.select(len(listed), listed.select), None


def page(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return a part of a list, see the module. Raises BadRequest, RangeError, and as `Session.history`."""
    what, requested = params.choice("what", LISTS), Range.from_params(params)
    found = LISTS[what](session, params, requested, progress)
    if what not in _AT_HAND or params.is_of_part():
        session.last[what] = found
    return found.first_page(ROWS_AT_ONCE if requested.most is None else requested.most)._asdict()


def rows(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return more rows of the list that was requested last. Raises BadRequest, NoTrace."""
    what = params.choice("what", LISTS)
    begin, end = params.page("rows")
    if what in _AT_HAND and not params.is_of_part():
        found = _AT_HAND[what](session, params)
    elif what in session.last:
        found = session.last[what]
    else:
        raise NoTrace("no list has been requested yet")
    return found.fetch(begin, end)


def _history(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    try:
        return _instructions(session, params, requested, progress)
    except NoFlow as error:
        selected = session.selected_or_empty(params.context(), progress)
        nothing = _paged(selected, 0, PageSelection(1, 1), lambda begin, end: [])
        return nothing._replace(lines=[*selected.lines, report.line("note", str(error))], instead="events")


def _instructions(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    context, at = params.context(), params.optional_number("at")
    if params.is_of_part():
        return _instructions_of_part(session, params, requested, progress)
    if requested.most is not None:
        selected = session.selected(context, progress)
        length = len(selected.history)
        return _of_history(session, selected, requested.by_number(length), params, length)
    at = session.number_of_selected_hart(context) if at is None else at
    selected, selection = session.history_page(requested.args, requested.size, context, progress, at)
    return _of_history(session, selected, selection, params, session.require_capture().lengths[selected.hart])


def _instructions_of_part(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    """Return the instructions of a part, which keep their numbers in the history."""
    from rvtrace_gdb.session.queries.lists.parts_query import InstructionQuery  # few lists are of a part

    selected = session.selected(params.context(), progress)
    found = listed(session, InstructionQuery(), selected, params, requested, progress)
    events = _of_history(session, selected, PageSelection(1, 1), params).events

    def what_happened(begin: int, end: int) -> Sequence[Annotation]:
        numbers = [row[0] for row in found.rows(begin, end)]
        starts = [at for at, number in enumerate(numbers) if not at or number != numbers[at - 1] + 1]
        stretches = zip(starts, [*starts[1:], len(numbers)], strict=True)
        assert events is not None
        return [it for first, stop in stretches for it in events(numbers[first], numbers[stop - 1] + 1)]

    return found._replace(events=None if events is None else what_happened)


def _history_at_hand(session: Session, params: Params) -> ListSelection:
    return _of_history(session, _last_history(session, params.optional_number("hart")), PageSelection(1, 1), params)


def _of_history(
    session: Session, selected: SelectedHistory, selection: PageSelection, params: Params, length: int = 0
) -> ListSelection:
    """Return the rows of one history, with what happened before them if that is requested."""
    times = params.given("times")

    def fetch(begin: int, end: int) -> Sequence[object]:
        return list(history_rows(selected.history, selected.program, begin, end))

    def events(begin: int, end: int) -> Sequence[Annotation]:
        found = annotations(selected.history, selected.program, begin, end, times=times)
        notes = session.require_capture().capture.place_notes
        if not notes:
            return list(found)
        from rvtrace_gdb.session.queries.notes import with_notes  # few traces have any

        return with_notes(found, notes, selected.hart, begin, end)

    what_happened = events if params.given("events") else None
    return _paged(selected, length, selection, fetch)._replace(events=what_happened)


def _interleaved(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    context, at = params.context(), params.optional_number("at")
    decoded = session.harts(context, progress)
    histories = decoded.harts.histories
    shown = next((hart for hart, history in histories.items() if len(history)), None)
    if shown is None:
        shown = session.selected(context, progress).hart  # raises the reason why there is nothing
    found = session.cached(Interleaved, histories[shown], lambda: Interleaved(histories))
    hart = decoded.harts.number(context.hart, context.thread_hart)
    place = HistoryNumber(hart, at) if at is not None and len(histories[hart]) else None
    selection = requested.select(len(found), partial(found.select, at=place))
    lines = session.warnings() + found.notes()
    return _of_all_harts(session, found, _last_history(session, shown), params, selection)._replace(lines=lines)


def _interleaved_at_hand(session: Session, params: Params) -> ListSelection:
    selected = _last_history(session, params.optional_number("hart"))
    found = session.cached(Interleaved, selected.history, _nothing)
    return _of_all_harts(session, found, selected, params, PageSelection(1, 1))


def _of_all_harts(
    session: Session, interleaved: Interleaved, selected: SelectedHistory, params: Params, selection: PageSelection
) -> ListSelection:
    """Return the rows of the histories of all harts. *selected*: that of one of them."""

    def fetch(begin: int, end: int) -> list[HartRows]:
        return [of_hart(*run) for run in interleaved.runs(begin, end)]

    def of_hart(number: int, hart: int, begin: int, end: int) -> HartRows:
        one = selected._replace(history=interleaved.histories[hart], hart=hart)
        return HartRows(number, hart, **_of_history(session, one, selection, params).fetch(begin, end))

    return _paged(selected, len(interleaved), selection, fetch)


def _paged(selected: SelectedHistory, length: int, selection: PageSelection, rows: RowFetch) -> ListSelection:
    """Return a list that is made of one history."""
    return ListSelection(
        length=length,
        selection=selection,
        rows=rows,
        lines=selected.lines,
        hart=selected.hart,
        overwritten=selected.overwritten,
    )


def _last_history(session: Session, hart: int | None) -> SelectedHistory:
    """Return the history that was decoded last. Raises NoTrace."""
    selected = session.last_selected(Context(hart=hart))
    return selected if selected is not None else _nothing()


def _nothing() -> Any:
    raise NoTrace("no history has been requested yet")


def _messages(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    def select(args: str, size: int) -> PageSelection:
        listing = session.dump(args, size, params.context(), params.optional_number("offset"), progress)
        lines.extend(listing.lines)
        return PageSelection(*listing[:3])

    lines: list[str] = []
    selection = requested.select(0, select)
    rows = partial(session.messages, **_computed("messages", params))
    return ListSelection(len(session.require_capture().messages()), selection, rows, lines, params.context().hart)


def _accesses(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    selected = session.selected_or_empty(params.context(), progress)
    accesses = session.searches.accesses(selected, params.place("where"))
    if params.given("anew"):
        accesses.restart()
    selection = requested.select(len(accesses), accesses.select)
    return _paged(selected, len(accesses), selection, accesses.rows)._replace(overwritten=False)


def _search_results(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    """Return the results of a search. By number, a history is needed; the user is told that it is empty."""
    query, context = params.list_query(), params.context()
    select = session.selected_or_empty if requested.most is None else session.selected
    selected = select(context, progress)
    return listed(session, query, selected, params, requested, progress)


def listed(
    session: Session, query: ListQuery, selected: SelectedHistory, params: Params, requested: Range, progress: Progress
) -> ListSelection:
    """Return the results of a query in a history. Raises RangeError, BadQuery."""
    results = session.searches.results(_of_part(session, query, selected, params, progress), selected, progress)
    requested = _since(results, params, requested)
    rows = _with_runners(session, selected, results, progress) if isinstance(query, ExecutionQuery) else results.rows
    selection, folding = _folded(results, params, requested, rows)
    if requested.most is None and not len(results):
        selection = selection._replace(notice=_no_results_notice(query, results, selected))
    notes = results.notes if requested.is_first(params) else ()
    notes = [f"note:     {selected.unless_earlier(note)}" for note in notes]
    pc = params.optional_number("pc") if session.live is not None else None  # a capture has no next instruction
    history, program = selected.history, selected.program
    comes = isinstance(query, ExecutionQuery) and pc is not None and query.comes(pc, history, program)
    paged = _paged(selected, len(results), selection, rows)
    return paged._replace(lines=[*selected.lines, *notes], comes=comes, folding=folding)


def _with_runners(
    session: Session, selected: SelectedHistory, results: PagedResults, progress: Progress
) -> RowFetch:
    """Return how executions are fetched, with the task, process or thread that ran then."""

    def fetch(begin: int, end: int) -> Sequence[Any]:
        from rvtrace_gdb.session.tasks.labels import with_runners  # few programs have tasks

        return with_runners(session, selected, results.rows(begin, end), progress)

    return fetch


def _of_part(
    session: Session, query: ListQuery, selected: SelectedHistory, params: Params, progress: Progress
) -> ListQuery:
    """Return the query that a request is about: of a task, a process or a thread alone, or of all."""
    if not params.is_of_part():
        return query
    from rvtrace_gdb.session.rpc.lists.parts import part_query  # few lists are of parts

    return part_query(session, query, selected, params, progress)


def _no_results_notice(query: ListQuery, results: PagedResults, selected: SelectedHistory) -> str:
    history = selected.history
    if not isinstance(query, EventQuery) and not len(history) and EventKind.HART_EVENT in history.kind_counts:
        from rvtrace_gdb.session.queries.hart_events import hart_event_counts, no_flow  # few traces have any

        text = no_flow(hart_event_counts(history))
        return f"{text[0].upper()}{text[1:]}."
    if isinstance(query, GapQuery) and selected.overwritten:
        return NO_GAPS_SINCE
    return selected.unless_earlier(results.none_message)


def _since(results: PagedResults, params: Params, requested: Range) -> Range:
    """Return the range with its beginning where the request wants it: anew, or at an instruction. Raises RangeError."""
    since = params.optional_number("since")
    if since is None or not len(results):
        if params.given("anew"):
            results.restart()
        return requested
    begin = results.number_from(since)
    if begin > len(results) and requested.most is None:
        raise RangeError(f"-from {since}: the last of this list is at @{results.position(len(results)) + 1}")
    if requested.most is None:
        results.restart(begin)
        return requested
    return requested._replace(begin=begin)


def _functions(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    selected = session.selected(params.context(), progress)
    if params.is_of_part():
        from rvtrace_gdb.session.queries.lists.parts_query import FunctionQuery  # few lists are of a part

        query = FunctionQuery(**_computed("functions", params))
        return listed(session, query, selected, params, requested, progress)
    functions = functions_of(session, selected, progress)
    rows = partial(functions.rows, **_computed("functions", params))
    selection, folding = _folded(functions, params, requested, rows)
    return _paged(selected, len(functions), selection, rows)._replace(folding=folding)


def _calls(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    depth = params.number("depth")
    selected = session.selected(params.context(), progress)
    functions = functions_of(session, selected, progress)
    parts = None
    if params.is_of_part():
        from rvtrace_gdb.session.rpc.lists.parts import parts_with_own_stacks  # few lists are of parts

        parts = parts_with_own_stacks(session, selected, params, progress)
    length = functions.tree(depth, progress, parts)
    requested = requested._replace(begin=requested.begin or 1)
    selection = requested.select(length, lambda args, size: PageSelection(1, length + 1))
    return _paged(selected, length, selection, functions.tree_rows)


def _differences(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    from rvtrace_gdb.session.rpc.lists.diff import compared  # reads another capture

    selected, found = compared(session, params, progress)
    if params.given("anew"):
        found.restart()
    selection = requested.select(len(found), found.select)
    return _paged(selected, len(found), selection, found.rows)


def _log(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    from rvtrace_gdb.session.rpc.lists.log import log_query  # the debug information of values, which few requests need

    query, selected = log_query(session, params, progress)
    return listed(session, query, selected, params, requested, progress)


def _calls_of(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    from rvtrace_gdb.session.rpc.lists.log import calls_of_query  # as for a log

    query, selected = calls_of_query(session, params, progress)
    return listed(session, query, selected, params, requested, progress)


def _records(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    from rvtrace_gdb.session.queries.lists import ctr_records  # not before there are records
    from rvtrace_gdb.session.target.csr_access import resolved

    context = params.context()
    access = resolved(params.table("access"), context) if params.given("access") else None
    found, lines = ctr_records.shown(session, context, access, progress)
    selection = requested.select(len(found), found.select)
    return ListSelection(len(found), selection, found.rows, lines, found.records.hart, now=found.since())


def _why(session: Session, params: Params, requested: Range, progress: Progress) -> ListSelection:
    from rvtrace_gdb.session.rpc.lists.why import WhyPage  # reads debug information

    found, selected = WhyPage.requested(session, params, progress)
    requested = requested._replace(begin=requested.begin or found.begin)
    selection = requested.select(len(found.rows), lambda args, size: found.select(args))

    def fetch(begin: int, end: int) -> Sequence[object]:
        return found.fetch(session, selected, begin, end, progress)

    return _paged(selected, len(found.rows), selection, fetch)


LISTS: Mapping[str, Callable[[Session, Params, Range, Progress], ListSelection]] = {
    "history": _history,
    "interleaved": _interleaved,
    "messages": _messages,
    "accesses": _accesses,
    **dict.fromkeys(("events", "gaps", "executions"), _search_results),
    "log": _log,
    "calls_of": _calls_of,
    "functions": _functions,
    "calls": _calls,
    "records": _records,
    "differences": _differences,
    "why": _why,
}
"""The lists by their names in a request; `list_rows.ROW_TYPES` has the types of their rows."""
_AT_HAND: Mapping[str, Callable[[Session, Params], ListSelection]] = {
    "history": _history_at_hand,
    "interleaved": _interleaved_at_hand,
}
"""Lists of which more rows are taken from what was decoded last: they do not keep an older history in memory."""


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"page": page, "rows": rows}
