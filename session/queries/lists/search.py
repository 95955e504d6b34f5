"""Places in a history, shown in pages: `trace events`, `trace gaps`, `trace find`, and the accesses of `trace data`."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.mismatched_returns import mismatched_returns, with_mismatched_returns
from rvtrace_gdb.decode.history.accesses import access_text, overlaps
from rvtrace_gdb.decode.history.event_fields import event_fields
from rvtrace_gdb.decode.history.events import GAP_KINDS, NO_OFFSET, EventKind, MismatchedReturn, Trap
from rvtrace_gdb.decode.history.hart_events import HartEvent, HartEventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.history.positions import history_number, history_number_if_known
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.decode.search import AddressQuery, ExecutionSearch
from rvtrace_gdb.rows.list_rows import AccessRow, FoundRow, Place
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.lists.pages import LIST_NUMBERS, Cursor, Folding, PageSelection, RangeError
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

Where = tuple[int, int]
"""A range of memory: its first byte, and its size; 0: that of the program's object there."""

NO_ACCESSES = "no data trace: the encoder sent no data packets (`trace start -format etrace -data` makes one)"

NONE_MADE = "no load, store or CSR instruction is in the trace"


def no_accesses_error(history: History) -> NoTrace:
    """Return an error that says why a history has no accesses."""
    return NoTrace(NONE_MADE if history.has_all_accesses else NO_ACCESSES)


class Accesses:
    """The accesses of *history* to the memory *where*, all when it is None, numbered from 1."""

    def __init__(self, history: History, program: Program, where: Where | None = None) -> None:
        self._asked = where
        self._history, self._program = history, program
        if where is not None and not where[1]:
            where = where[0], size_at(where[0], program.image_of(history.context_at(0)))
        self._where = where
        self._chosen = [access for access in history.accesses if where is None or overlaps(access, *where)]
        self._cursor = Cursor("data trace", numbers=LIST_NUMBERS)

    def __len__(self) -> int:
        return len(self._chosen)

    def is_for(self, history: History, where: Where | None) -> bool:
        """Return whether these are the accesses that are requested now."""
        return history is self._history and where == self._asked

    def select(self, args: str, size: int | None) -> PageSelection:
        """Return which accesses `trace data ... ARGS` shows, as `trace history` does. Raises RangeError, NoTrace."""
        if not self._history.accesses:
            raise no_accesses_error(self._history)
        if not self._chosen:
            return PageSelection(1, 1, self._none())
        return self._cursor.select(args, size, len(self._chosen))

    def restart(self) -> None:
        """Show the first page next."""
        self._cursor.reset()

    def rows(self, begin: int, end: int) -> list[AccessRow]:
        """Return the accesses numbered *begin* to *end* - 1."""
        return [self._access_row(number) for number in range(max(begin, 1), min(end, len(self._chosen) + 1))]

    def _access_row(self, number: int) -> AccessRow:
        access, history, program = self._chosen[number - 1], self._history, self._program
        position = access.position
        image = program.image_of(history.context_at(max(access.after, 0) if position is None else position))
        return AccessRow(
            number=number,
            position=history_number_if_known(position),
            pc=None if position is None else history.pc(position),
            text=access_text(access, program.xlen, image.symbol),
            offset=access.offset,
        )

    def _none(self) -> str:
        assert self._where is not None
        return no_access_message(self._history.accesses, self._where)


def no_access_message(accesses: Iterable[MemoryAccess], where: Where) -> str:
    """Return the message if none of *accesses* is to this memory."""
    begin, size = where
    unknown = sum(access.address is None for access in accesses)
    text = f"No access to {size} byte{'s' if size > 1 else ''} at {begin:#x} is in the trace."
    return f"{text} The address of {unknown} access{'es' if unknown > 1 else ''} is not known." if unknown else text


def size_at(address: int, image: Image) -> int:
    """Return the size of the function or object whose symbol begins at an address, 1 if there is none."""
    symbols = (
        symbol.size
        for elf, bias in image.elves
        for section in elf.sections
        for symbol in section.symbols
        if symbol.address + bias == address
    )
    return max(symbols, default=1) or 1


AT_GAP, AT_END, STARTS = "gap", "end", "start"
_MISMATCHED_RETURN = "mismatched-return"
_WITH_TARGET = GAP_KINDS | {EventKind.MISMATCHED_RETURN, EventKind.HART_EVENT}

KINDS: Mapping[str, Callable[[Event], bool]] = {
    **{kind.value.replace(" ", "-"): lambda event, kind=kind: event.kind is kind for kind in EventKind},  # type: ignore[misc]
    "exception": lambda event: isinstance(event.fact, Trap) and event.fact.may_be_exception,
    "interrupt": lambda event: isinstance(event.fact, Trap) and event.fact.may_be_interrupt,
    **{kind.value: lambda event, kind=kind: _is_hart_event(event, kind) for kind in HartEventKind},  # type: ignore[misc]
}
"""The kinds of events that `trace events` accepts. A trap whose kind the trace does not say counts as both kinds."""


def _is_hart_event(event: Event, kind: HartEventKind) -> bool:
    return isinstance(event.fact, HartEvent) and event.fact.kind is kind


class BadQuery(RvtraceError):
    """The query cannot have results."""


class Searcher(NamedTuple):
    """Searches one history. *calls*: returns the calls in it, which not every query needs."""

    calls: Callable[[], CallHistory]
    progress: Progress = silent

    def search(self, query: AddressQuery) -> ExecutionSearch:
        """Return the positions of the history that a query finds."""
        return ExecutionSearch(self.calls(), query, self.progress)


class ListQuery(Protocol):
    """What a list of places in a history is to show."""

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> "QueryResults": ...


class QueryResults(Protocol):
    """The results of a query, by their index.

    none_message  is shown if there are none
    notes         lines that say what the results do not show
    """

    none_message: str
    notes: Sequence[str]

    def __len__(self) -> int: ...

    def row(self, index: int) -> Any: ...

    def position(self, index: int) -> int:
        """Return the position of a result in the history; positions increase with the indices."""

    def count_before(self, position: int) -> int:
        """Return how many results are before a position."""


class EventQuery(NamedTuple):
    """Asks for events of some *kinds* (see `KINDS`), all if there are none. Raises `BadQuery`."""

    kinds: tuple[str, ...] = ()

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        tests = [KINDS[_checked_kind(kind)] for kind in self.kinds]
        events = [event for event in history.events if not tests or any(is_of_kind(event) for is_of_kind in tests)]
        if not tests or _MISMATCHED_RETURN in self.kinds:
            returns = mismatched_returns(history, program, searcher.calls(), searcher.progress)
            events = with_mismatched_returns(events, returns)
        kinds = f" of the kind {' or '.join(self.kinds)}" if self.kinds else ""
        return EventResults(history, program, [(event, "") for event in events], f"No event{kinds} is in this trace.")


NO_GAPS_SINCE = "No gaps: from its first instruction on the history is complete. Older trace was overwritten."


class GapQuery(NamedTuple):
    """Asks for missing trace: the gaps of the history, and losses before the first instruction."""

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        causes = (event for event in history.events if event.kind in GAP_KINDS)
        groups = [list(group) for _, group in groupby(causes, attrgetter("position"))]
        gaps = [_gap(group) for group in groups if _is_gap(history, group)]
        return EventResults(history, program, gaps, "No gaps: the history is complete.")


class PagedResults:
    """The results of *query* in a history, numbered from 1 and shown in pages. *calls* returns the history's calls."""

    def __init__(
        self,
        history: History,
        program: ContextImages,
        query: ListQuery,
        progress: Progress = silent,
        calls: Callable[[], CallHistory] | None = None,
    ) -> None:
        searcher = Searcher(calls or (lambda: CallHistory(history, program, progress)), progress)
        self.history, self._query = history, query
        self._results = query.results(history, program, searcher)
        self._cursor = Cursor("list", numbers=LIST_NUMBERS)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def none_message(self) -> str:
        """The message if there are no results."""
        return self._results.none_message

    @property
    def notes(self) -> Sequence[str]:
        """What the results do not show."""
        return self._results.notes

    def is_for(self, history: History, query: ListQuery) -> bool:
        """Return whether these are the results of a query in a history."""
        return history is self.history and type(query) is type(self._query) and query == self._query

    def select(self, args: str, size: int | None) -> PageSelection:
        """Return which results are shown, as `trace history` does. Raises RangeError."""
        if not len(self):
            return PageSelection(1, 1, self._results.none_message)
        return self._cursor.select(args, size, len(self))

    def turn(self, args: str, size: int, folding: Folding) -> PageSelection:
        """Return the page for `""`, `+` or `-` with *size* lines, in which repetitions are folded."""
        return self._cursor.turn(args, len(self), lambda place, forward: folding.page(place, size, forward=forward))

    def position(self, number: int) -> int:
        """Return the position in the history of the result with this number. Raises BadQuery."""
        if not 1 <= number <= len(self):
            raise BadQuery(f"there is no number {number} in the list, which has {len(self)}")
        return self._results.position(number - 1)

    def nearest(self, position: int, direction: int) -> int | None:
        """Return the number of the last result before a position, or with direction 1 of the first one after it."""
        before = self._results.count_before
        index = before(position) - 1 if direction < 0 else before(position + 1)
        return index + 1 if 0 <= index < len(self) else None

    def restart(self, number: int | None = None) -> None:
        """Show the first page next, or the one that begins with the result of this number."""
        self._cursor.reset(number)

    def number_from(self, number: int) -> int:
        """Return the number of the first result at or after the instruction with a number in the history, which may be
        one more than there are. Raises RangeError: the history has no such instruction.
        """
        if not 1 <= number <= len(self.history):
            raise RangeError(f"-from {number}: the history has the numbers 1 to {len(self.history)}")
        return self._results.count_before(number - 1) + 1

    def rows(self, begin: int, end: int) -> list[Any]:
        """Return the results numbered *begin* to *end* - 1."""
        return [self._results.row(number - 1) for number in range(max(begin, 1), min(end, len(self) + 1))]


class Places:
    """The places of addresses at positions of a history."""

    def __init__(self, history: History, program: ContextImages) -> None:
        self.history, self._program = history, program

    def instruction(self, position: int) -> Place | str:
        """Return the place of the instruction at a position."""
        if position >= len(self.history):
            return AT_END
        pc = self.history.pc(position)
        return AT_GAP if pc == GAP else self.address(pc, position)

    def previous_instruction(self, position: int) -> Place | str:
        """Return the place of the instruction before a position."""
        return self.instruction(position - 1) if position else STARTS

    def source_place(self, position: int, traps: Sequence[Event]) -> Place | str:
        """Return from where the instruction at a position was reached. *traps*: those before it, each in the handler of
        the one before: the last one hit an instruction that did not run there. Where that is not known, it is
        the instruction before the position.
        """
        hit = traps[-1].last_pc if traps else None
        return self.previous_instruction(position) if hit is None else self.address(hit, max(position - 1, 0))

    def address(self, pc: int, position: int) -> Place:
        """Return the place of an address in the program that runs at a position."""
        image = self._program.image_of(self.history.context_at(min(position, len(self.history) - 1)))
        if image is self._program.base and image.path and not image.is_added(pc):
            return (pc,)
        symbol = image.symbol(pc)
        return (pc,) if symbol is None else (pc, *symbol)


class EventResults:
    """Events, each with the text that follows its own."""

    notes: Sequence[str] = ()

    def __init__(
        self, history: History, program: ContextImages, events: Sequence[tuple[Event, str]], none_message: str
    ) -> None:
        self._places, self._events, self.none_message = Places(history, program), events, none_message

    def __len__(self) -> int:
        return len(self._events)

    def position(self, index: int) -> int:
        return self._events[index][0].position

    def count_before(self, position: int) -> int:
        return bisect_left(self._events, position, key=lambda event: event[0].position)

    def row(self, index: int) -> FoundRow:
        (event, more), places = self._events[index], self._places
        position, last = event.position, max(event.position - 1, 0)
        fact, pc = event.fact, event.last_pc
        here = places.instruction(position)
        if isinstance(fact, HartEvent) and pc is not None:
            here, pc = places.address(pc, position), None
        next_pc = event.next_pc if event.kind in _WITH_TARGET else None
        return FoundRow(
            number=index + 1,
            position=history_number(position),
            kind=event.kind_name,
            here=here,
            facts=event_fields(event),
            text=event.text + more,
            source=None if pc is None else places.address(pc, last),
            target=None if next_pc is None else places.address(next_pc, history_number(position)),
            time=places.history.time_of(event),
            expected=places.address(fact.expected, last) if isinstance(fact, MismatchedReturn) else None,
            offset=None if event.offset == NO_OFFSET else event.offset,
            task=None,
            process=None,
            thread=None,
        )


def _checked_kind(kind: str) -> str:
    if kind not in KINDS:
        raise BadQuery(f"there are no events of the kind {kind!r}; there are {', '.join(sorted(KINDS))}")
    return kind


def _is_gap(history: History, causes: Collection[Event]) -> bool:
    """Return whether something is missing here: the end of tracing at the end of the history is not a gap."""
    position = next(iter(causes)).position
    if position < len(history) and history.pc(position) == GAP:
        return True
    return any(event.kind is not EventKind.TRACE_OFF for event in causes)


def _gap(causes: Sequence[Event]) -> tuple[Event, str]:
    """Return the text of a gap: its first cause, as in the list, and where it ends."""
    more = len(causes) - 1
    text = f" (and {more} more: `trace events` has them)" if more else ""
    whole = causes[0]._replace(next_pc=_last_known(event.next_pc for event in causes), end=causes[-1].end)
    return whole, text


def _last_known(addresses: Iterable[int | None]) -> int | None:
    return next((address for address in reversed(list(addresses)) if address is not None), None)
