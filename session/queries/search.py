"""Places in a history, shown in pages: `trace events`, `trace gaps`, `trace find`, and the accesses of `trace data`."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.mismatched_returns import mismatched_returns, with_mismatched_returns
from rvtrace_gdb.decode.history.accesses import access_text, overlaps
from rvtrace_gdb.decode.history.events import GAP_KINDS, NO_OFFSET, EventKind, MismatchedReturn, Trap
from rvtrace_gdb.decode.history.history import GAP, Event, History, event_fields
from rvtrace_gdb.decode.program.image import ContextImages, Image, Program
from rvtrace_gdb.decode.program.instructions import Access
from rvtrace_gdb.decode.search import Query, Search
from rvtrace_gdb.rows.list_rows import AccessRow, FoundRow, Place
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.folding import Folding
from rvtrace_gdb.session.queries.rows import ROWS, Cursor, RangeError, Selection
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

Where = tuple[int, int]
"""A range of memory: its first byte, and its size; 0: that of the program's object there."""

NO_ACCESSES = "no data trace: the encoder sent no data packets (`trace start -format etrace -data` makes one)"

NONE_MADE = "no load, store or CSR instruction is in the trace"


def absent(history: History) -> NoTrace:
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
        self._cursor = Cursor("data trace", numbers=ROWS)

    def __len__(self) -> int:
        return len(self._chosen)

    def is_of(self, history: History, where: Where | None) -> bool:
        """Return whether these are the accesses that are requested now."""
        return history is self._history and where == self._asked

    def select(self, args: str, size: int | None) -> Selection:
        """Return which accesses `trace data ... ARGS` shows, as `trace history` does. Raises RangeError, NoTrace."""
        if not self._history.accesses:
            raise absent(self._history)
        if not self._chosen:
            return Selection(1, 1, self._none())
        return self._cursor.select(args, size, len(self._chosen))

    def restart(self) -> None:
        """Show the first page next."""
        self._cursor.reset()

    def rows(self, begin: int, end: int) -> list[AccessRow]:
        """Return the accesses numbered *begin* to *end* - 1."""
        return [self._row(number) for number in range(max(begin, 1), min(end, len(self._chosen) + 1))]

    def _row(self, number: int) -> AccessRow:
        access, history, program = self._chosen[number - 1], self._history, self._program
        position = access.position
        image = program.image_of(history.context_at(max(access.after, 0) if position is None else position))
        text = access_text(access, program.xlen, image.symbol)
        if position is None:
            return AccessRow(number, None, None, access.offset, text)
        return AccessRow(number, position + 1, history.pc(position), access.offset, text)

    def _none(self) -> str:
        assert self._where is not None
        return none_there(self._history.accesses, self._where)


def none_there(accesses: Iterable[Access], where: Where) -> str:
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
_WITH_TARGET = GAP_KINDS | {EventKind.MISMATCHED_RETURN}

KINDS: Mapping[str, Callable[[Event], bool]] = {
    **{kind.value.replace(" ", "-"): lambda event, kind=kind: event.kind is kind for kind in EventKind},  # type: ignore[misc]
    "exception": lambda event: isinstance(event.fact, Trap) and event.fact.may_be_exception,
    "interrupt": lambda event: isinstance(event.fact, Trap) and event.fact.may_be_interrupt,
}
"""The kinds of events that `trace events` accepts. A trap whose kind the trace does not say counts as both kinds."""


class BadQuestion(RvtraceError):
    """The question cannot have an answer."""


class Searching(NamedTuple):
    """How the history that a question is about is searched. *calls*: returns the calls in it."""

    calls: Callable[[], CallHistory]
    progress: Progress = silent

    def __call__(self, wanted: Query) -> Search:
        return Search(self.calls(), wanted, self.progress)


class Question(Protocol):
    """A search."""

    def answer(self, history: History, program: ContextImages, search: Searching) -> "Answer": ...


class Answer(Protocol):
    """The results, by number from 0 on. *none*: the message if there are none; *notes*: what they do not show."""

    none: str
    notes: Sequence[str]

    def __len__(self) -> int: ...

    def row(self, number: int) -> FoundRow: ...

    def position(self, number: int) -> int:
        """Return the position of a result in the history; positions increase with the numbers."""

    def before(self, position: int) -> int:
        """Return how many results are before a position."""


class Events(NamedTuple):
    """A search for events of some *kinds* (see `KINDS`), all if there are none. Raises `BadQuestion`."""

    kinds: tuple[str, ...] = ()

    def answer(self, history: History, program: ContextImages, search: Searching) -> Answer:
        wanted = [KINDS[_known(kind)] for kind in self.kinds]
        found = [event for event in history.events if not wanted or any(is_wanted(event) for is_wanted in wanted)]
        if not wanted or _MISMATCHED_RETURN in self.kinds:
            returns = mismatched_returns(history, program, search.calls(), search.progress)
            found = with_mismatched_returns(found, returns)
        of = f" of the kind {' or '.join(self.kinds)}" if self.kinds else ""
        return _Events(history, program, [(event, "") for event in found], f"No event{of} is in this trace.")


NO_GAPS_SINCE = "No gaps: from its first instruction on the history is complete. Older trace was overwritten."


class Gaps(NamedTuple):
    """A search for missing trace: the gaps of the history, and losses before the first instruction."""

    def answer(self, history: History, program: ContextImages, search: Searching) -> Answer:
        causes = (event for event in history.events if event.kind in GAP_KINDS)
        groups = [list(group) for _, group in groupby(causes, attrgetter("position"))]
        found = [_gap(group) for group in groups if _is_gap(history, group)]
        return _Events(history, program, found, "No gaps: the history is complete.")


class Found:
    """The answer to *question* about a history, shown in pages. *calls* returns the history's calls."""

    def __init__(
        self,
        history: History,
        program: ContextImages,
        question: Question,
        progress: Progress = silent,
        calls: Callable[[], CallHistory] | None = None,
    ) -> None:
        search = Searching(calls or (lambda: CallHistory(history, program, progress)), progress)
        self.history, self._question = history, question
        self._answer = question.answer(history, program, search)
        self._cursor = Cursor("list", numbers=ROWS)

    def __len__(self) -> int:
        return len(self._answer)

    @property
    def none(self) -> str:
        """The message if nothing was found."""
        return self._answer.none

    @property
    def notes(self) -> Sequence[str]:
        """What the results do not show."""
        return self._answer.notes

    def is_of(self, history: History, question: Question) -> bool:
        """Return whether this is the answer to the question that is asked now."""
        same = type(question) is type(self._question) and question == self._question
        return history is self.history and same

    def select(self, args: str, size: int | None) -> Selection:
        """Return which results are shown, as `trace history` does. Raises RangeError."""
        if not len(self):
            return Selection(1, 1, self._answer.none)
        return self._cursor.select(args, size, len(self))

    def turn(self, args: str, size: int, folding: Folding) -> Selection:
        """Return the page for `""`, `+` or `-` with *size* lines, in which repetitions are folded."""
        return self._cursor.turn(args, len(self), lambda place, forward: folding.page(place, size, forward=forward))

    def position(self, number: int) -> int:
        """Return the position in the history of the result with this number. Raises BadQuestion."""
        if not 1 <= number <= len(self):
            raise BadQuestion(f"there is no number {number} in the list, which has {len(self)}")
        return self._answer.position(number - 1)

    def nearest(self, position: int, direction: int) -> int | None:
        """Return the number of the last result before a position, or with direction 1 of the first one after it."""
        i = self._answer.before(position) - 1 if direction < 0 else self._answer.before(position + 1)
        return i + 1 if 0 <= i < len(self) else None

    def restart(self, number: int | None = None) -> None:
        """Show the first page next, or the one that begins with the result of this number."""
        self._cursor.reset(number)

    def number_from(self, number: int) -> int:
        """Return the number of the first result at or after the instruction with a number in the history, which may be
        one more than there are. Raises RangeError: the history has no such instruction.
        """
        if not 1 <= number <= len(self.history):
            raise RangeError(f"-from {number}: the history has the numbers 1 to {len(self.history)}")
        return self._answer.before(number - 1) + 1

    def rows(self, begin: int, end: int) -> list[FoundRow]:
        """Return the results numbered *begin* to *end* - 1."""
        return [self._answer.row(number - 1) for number in range(max(begin, 1), min(end, len(self) + 1))]


class Places:
    """The places of addresses at positions of a history."""

    def __init__(self, history: History, program: ContextImages) -> None:
        self.history, self._program = history, program

    def at(self, position: int) -> Place | str:
        """Return the place of the instruction at a position."""
        if position >= len(self.history):
            return AT_END
        pc = self.history.pc(position)
        return AT_GAP if pc == GAP else self.of(pc, position)

    def before(self, position: int) -> Place | str:
        """Return the place of the instruction before a position."""
        return self.at(position - 1) if position else STARTS

    def of(self, pc: int, position: int) -> Place:
        """Return the place of an address in the program at a position."""
        image = self._program.image_of(self.history.context_at(min(position, len(self.history) - 1)))
        if image is self._program.base and image.path and not image.is_added(pc):
            return (pc,)
        symbol = image.symbol(pc)
        return (pc,) if symbol is None else (pc, *symbol)


class _Events:
    """Events, each with the text that follows its own."""

    notes: Sequence[str] = ()

    def __init__(
        self, history: History, program: ContextImages, events: Sequence[tuple[Event, str]], none: str
    ) -> None:
        self._places, self._events, self.none = Places(history, program), events, none

    def __len__(self) -> int:
        return len(self._events)

    def position(self, number: int) -> int:
        return self._events[number][0].position

    def before(self, position: int) -> int:
        return bisect_left(self._events, position, key=lambda found: found[0].position)

    def row(self, number: int) -> FoundRow:
        (event, more), places = self._events[number], self._places
        position, text = event.position, event.text + more
        source = None if event.last_pc is None else places.of(event.last_pc, max(position - 1, 0))
        target = None
        if event.next_pc is not None and event.kind in _WITH_TARGET:
            target = places.of(event.next_pc, position + 1)
        expected = None
        if isinstance(event.fact, MismatchedReturn):
            expected = places.of(event.fact.expected, max(position - 1, 0))
        kind, time = event.kind.value.replace(" ", "-"), places.history.time_at(position)
        here = places.at(position)
        facts, offset = event_fields(event), None if event.offset == NO_OFFSET else event.offset
        return FoundRow(number + 1, position + 1, here, kind, text, source, target, time, offset, facts, expected)


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise BadQuestion(f"there are no events of the kind {kind!r}; there are {', '.join(sorted(KINDS))}")
    return kind


def _is_gap(history: History, causes: Collection[Event]) -> bool:
    """Return whether something is missing here: the end of tracing at the end of the history is no gap."""
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
