"""The rows of a list of a history: which rows it shows, what is in them, and what happened between them.

The arguments of a list are those of gdb's `record instruction-history`, with the same errors in the same words, so
that users of gdb's command know this one. They are checked against a transcript of gdb 13.1
(tests/data/gdb-transcripts), with two deliberate differences: numbers are not cut to 32 bits, and the number after
the last one is out of bounds (in gdb it is the current instruction, for which gdb prints nothing at all). Numbers
count the positions of a `History` from 1, gaps included. Ranges are half-open: *end* is the number after the last.

Rows are for a program that formats them elsewhere: gdb, which may not have the code that ran. Annotations describe
what happened between them: traps, changes of context, times. Places where nothing is missing and nothing happened to
the program have none: where the history begins and ends, where it continues after a gap, and where the debugger only
halted the hart. `trace events` lists them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.history.event_wording import context_text, says_its_kind
from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind, Start, Stop, StopReason
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.program.csrs import Context
from rvtrace_gdb.decode.program.image import CodeMissing, ContextImages, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.rows.list_rows import Annotation, Happened, Place, ShortHistoryRow
from rvtrace_gdb.support.errors import RvtraceError

_RECORD, _LISTING = "branch trace record", "instruction-history"
_NUMBERS = "numbers go from 1 to {}"
ROWS = "rows of this list go from 1 to {} (the number after @ is that in the history)"
"""The listing mode for lists with numbers of their own that show rows of another list."""

_NUMBER = re.compile(r"\s*([0-9]+)")


class RangeError(RvtraceError):
    """The range of a list is invalid; the message is gdb's."""


class Selection(NamedTuple):
    """The positions numbered *begin* to *end* - 1 are to be shown; *notice* is printed instead if there are none."""

    begin: int
    end: int
    notice: str | None = None


class Cursor:
    """The page that was shown last, after which the next one begins. One per history: gdb and the console share it.

    The first page is around the *home*: the position in the past, or the end. After the home has changed, the next page
    is a first page again (gdb's record-btrace.c, record_btrace_target::insn_history and record_btrace_clear_histories).

    *record*: gdb's name of what is listed; *listing*: the gdb command whose size applies, without "record"; *numbers*:
    a text that says what the numbers count, and that they go to {}.
    """

    def __init__(self, record: str = _RECORD, listing: str = _LISTING, numbers: str = _NUMBERS) -> None:
        self._record, self._listing, self._numbers = record, listing, numbers
        self._shown: Selection | None = None
        self._home: int | None = None

    def reset(self, begin: int | None = None) -> None:
        """Forget the last page: the history has changed and the next page starts at its end again, or at *begin*."""
        self._shown = None if begin is None else Selection(begin, begin)

    def select(self, args: str, size: int | None, length: int, home: int | None = None) -> Selection:
        """Return what `record instruction-history ARGS` shows of *length* positions, and move there. Modifiers (/r) are
        not part of *args*.

        *size* is gdb's `record instruction-history-size`, None or 0 for unlimited. *home*: the number of the position
        in the past, *length* + 1 after the last instruction; None: in the present. Raises `RangeError`, which does not
        move the cursor.
        """
        if length == 0:
            raise RangeError("No trace.")
        if home != self._home:
            self._shown, self._home = None, home
        args = args.strip()
        size = size or length
        if args in ("", "+"):
            selection = self._forward(size, length)
        elif args == "-":
            selection = self._backward(size, length)
        else:
            selection = _within(*_explicit(args, size, self._listing), length, self._numbers)
        self._shown = selection
        return selection

    def turn(self, args: str, length: int, page: Callable[[int, bool], Selection]) -> Selection:
        """Return the page for `""`, `+` or `-`, and move there. *page*: returns that from a number on (True), or the
        one before it.
        """
        shown = self._shown
        if shown is None:
            selection = page(length + 1, False)
        elif args == "-":
            at_start = Selection(1, 1, f"At the start of the {self._record}.")
            selection = page(shown.begin, False) if shown.begin > 1 else at_start
        else:
            at_end = Selection(length + 1, length + 1, f"At the end of the {self._record}.")
            selection = page(shown.end, True) if shown.end <= length else at_end
        self._shown = selection
        return selection

    def _forward(self, size: int, length: int) -> Selection:
        if self._shown is None:
            return self._from_home(0, size, length)
        begin = self._shown.end
        end = min(begin + size, length + 1)
        return Selection(begin, end, f"At the end of the {self._record}." if begin == end else None)

    def _backward(self, size: int, length: int) -> Selection:
        if self._shown is None:
            return self._from_home(1 - size, size, length)
        end = self._shown.begin
        begin = max(end - size, 1)
        return Selection(begin, end, f"At the start of the {self._record}." if begin == end else None)

    def _from_home(self, first: int, size: int, length: int) -> Selection:
        """Return a page from *first* after the home on, extended to the other side where the history ends."""
        begin = max(min((self._home or length + 1) + first, length + 1 - size), 1)
        return Selection(begin, min(begin + size, length + 1))


def _explicit(args: str, size: int, listing: str) -> tuple[int, int]:
    """Parse `A`, `A,B`, `A,+N` and `A,-N`: return the first number, and the one after the last."""
    first, rest = _number(args)
    if not rest.startswith(","):
        _nothing_follows(rest)
        return first, first + size
    rest = rest[1:].lstrip()
    if rest[:1] not in ("+", "-"):
        last, rest = _number(rest)
        _nothing_follows(rest)
        return first, last + 1
    forward = rest[0] == "+"
    count, rest = _number(rest[1:])
    _nothing_follows(rest)
    if count == 0:
        raise RangeError(f"Bad record {listing}-size.")
    if forward:
        return first, first + count
    # More than there are before A is an error in gdb, exactly as many is not.
    return first - count + 1 if first >= count else 0, first + 1


def _within(begin: int, end: int, length: int, numbers: str) -> Selection:
    """Return the selection; an end that is too high is cut silently, a beginning is not."""
    if end <= begin:
        raise RangeError("Bad range.")
    if not 1 <= begin <= length:
        raise RangeError(f"Range out of bounds: {numbers.format(length)}.")
    return Selection(begin, min(end, length + 1))


def _number(text: str) -> tuple[int, str]:
    match = _NUMBER.match(text)
    if match is None:
        raise RangeError(f"Expected positive number, got: {text.lstrip()}.")
    # A number of 40 digits exceeds any history, and Python refuses to convert thousands.
    return int(match[1].lstrip("0")[:40] or "0"), text[match.end() :]


def _nothing_follows(text: str) -> None:
    if text:
        raise RangeError(f"Junk after argument: {text}.")


def rows(history: History, program: ContextImages, begin: int, end: int) -> Iterator[ShortHistoryRow]:
    """Yield the rows numbered *begin* to *end* - 1, which count from 1."""
    end = min(end, len(history) + 1)
    while begin < end:
        following = bisect_right(history.contexts, begin - 1, key=itemgetter(0))
        changes = following < len(history.contexts)
        until = min(end, history.contexts[following][0] + 1) if changes else end
        image = program.image_of(history.context_at(begin - 1))
        yield from _stretch(history, image, image is not program.base, begin, until)
        begin = until


def _stretch(history: History, image: Image, of_process: bool, begin: int, end: int) -> Iterator[ShortHistoryRow]:
    """Yield rows of one context."""
    known: dict[int, tuple[str, str | None, int] | None] = {}
    own = history.code(begin - 1, end - 1)
    for number, pc in enumerate(history.pcs(begin - 1, end - 1), begin):
        if pc == GAP:
            yield (number, None, history.gap_at(number - 1).as_gap)
            continue
        if pc not in known:
            elsewhere = of_process or not image.path or image.is_added(pc)
            known[pc] = _code(image, pc, named=elsewhere) if elsewhere or history.has_code else None
        code = known[pc]
        if number - 1 in own:
            code = (own[number - 1].hex(), *((None, 0) if code is None else code[1:]))
        yield (number, pc) if code is None else (number, pc, *code)


def _code(image: Image, pc: int, *, named: bool) -> tuple[str, str | None, int] | None:
    """Return the bytes of an instruction, and its function and the offset in it, if gdb may not know them (*named*)."""
    try:
        code = image.read(pc, image.instruction(pc).length).hex()
    except (CodeMissing, UndecodableInstruction):
        return None
    name, offset = (image.symbol(pc) if named else None) or (None, 0)
    return code, name, offset


AT_MOST = 8  # events listed at one place

def annotations(
    history: History, program: ContextImages, begin: int, end: int, *, times: bool = True
) -> Iterator[Annotation]:
    """Yield what happened before the rows numbered *begin* to *end* - 1, and after the history's last row if that is
    included.
    """
    first, stop = begin - 1, min(end - 1, len(history))
    if stop == len(history) and first < stop:
        stop += 1
    said = _said(history, program, first, stop)
    stamps = _stamps(history, first, stop) if times else {}
    for position in sorted(said.keys() | stamps.keys()):
        time, ticks = stamps.get(position, (None, None))
        if position in said or ticks != 0:  # it need not be reported that no time passed
            yield Annotation(position + 1, said.get(position, []), time, ticks)


def _stamps(history: History, first: int, stop: int) -> dict[int, tuple[int, int | None]]:
    """Return {position: (time, ticks since the previous one)}."""
    positions, times = history.times.arrays
    begin, end = bisect_left(positions, first), bisect_left(positions, stop)
    before = [times[begin - 1] if begin else None, *times[begin:end]]
    return {
        position: (now, None if last is None else now - last)
        for position, now, last in zip(positions[begin:end], times[begin:end], before, strict=False)
    }


def _said(history: History, program: ContextImages, first: int, stop: int) -> dict[int, list[Happened]]:
    found: dict[int, list[Happened]] = {}
    for position, group in groupby(history.events_between(first, stop), attrgetter("position")):
        events = _worth_saying(history, position, list(group))
        said = [_of_event(history, program, event) for event in events[:AT_MOST]]
        if len(events) > AT_MOST:
            said.append(Happened("note", f"and {len(events) - AT_MOST} more: `trace events` has them", None, False))
        found[position] = said
    for position, text in _changes(history, first, stop):
        found.setdefault(position, []).append(Happened("context", text, None, True))
    return {position: said for position, said in found.items() if said}


def _worth_saying(history: History, position: int, events: Sequence[Event]) -> list[Event]:
    """Return the events at one position that are reported; changes of context are reported apart from these."""
    if position < len(history) and history.pc(position) == GAP:
        return [event for event in events if event.kind not in GAP_KINDS and event.kind is not EventKind.CONTEXT]
    begins = position == 0 or history.pc(position - 1) == GAP
    left_out = {EventKind.CONTEXT}
    if position == len(history) or _only_halted(events):
        left_out.add(EventKind.TRACE_OFF)
    if begins or _only_halted(events):
        left_out.add(EventKind.TRACE_ON)
    return [event for event in events if event.kind not in left_out and not (begins and _is_start(event))]


def _is_start(event: Event) -> bool:
    """Return whether decoding begins, and nothing else happens."""
    return event.kind is EventKind.SYNC and not (isinstance(event.fact, Start) and event.fact.reason.marks)


def _only_halted(events: Sequence[Event]) -> bool:
    """Return whether the debugger halted and resumed the hart. E-Trace does not say why tracing stops: nothing is
    missing.
    """
    switched = [event.fact for event in events if event.kind in (EventKind.TRACE_OFF, EventKind.TRACE_ON)]
    return all(
        fact.reason in _HALTS and fact.open is None
        if isinstance(fact, Stop)
        else isinstance(fact, Start) and fact.reason.resumes
        for fact in switched
    )


_HALTS = frozenset({StopReason.DEBUG_MODE, StopReason.UNSPECIFIED})


def describe_event(history: History, program: ContextImages, event: Event) -> Happened | None:
    """Return what is reported about one event; None: nothing."""
    events = history.events_between(event.position, event.position + 1)
    worth = event in _worth_saying(history, event.position, events)
    return _of_event(history, program, event) if worth else None


def _of_event(history: History, program: ContextImages, event: Event) -> Happened:
    hit = None
    if event.kind is EventKind.TRAP and event.last_pc is not None:
        hit = _place(history, program, event.last_pc, max(event.position - 1, 0))
    text = event.as_gap if event.kind in GAP_KINDS else event.text
    return Happened(event.kind.value.replace(" ", "-"), text, hit, says_its_kind(event.fact))


def _place(history: History, program: ContextImages, pc: int, position: int) -> Place:
    """Return an address in the program that ran at a position."""
    image = program.image_of(history.context_at(position))
    if image is program.base and image.path and not image.is_added(pc):
        return (pc,)
    symbol = image.symbol(pc)
    return (pc,) if symbol is None else (pc, *symbol)


def _changes(history: History, first: int, stop: int) -> Iterator[tuple[int, str]]:
    """Yield (position, change of the context from there on)."""
    contexts = history.contexts
    begin = bisect_left(contexts, first, key=itemgetter(0))
    end = bisect_left(contexts, stop, key=itemgetter(0))
    before = contexts[begin - 1][1] if begin else Context()
    for position, now in contexts[begin:end]:
        if now != before:
            yield position, _change(before, now)
        before = now


def _change(before: Context, now: Context) -> str:
    """Describe what is new in a context; the whole context if something is not known any more."""
    same_mode = (before.prv, before.virtual) == (now.prv, now.virtual)
    new = Context(
        None if same_mode else now.prv,
        now.virtual,
        None if before.scontext == now.scontext else now.scontext,
        None if before.hcontext == now.hcontext else now.hcontext,
    )
    return context_text(now if new._replace(virtual=False) == Context() else new)
