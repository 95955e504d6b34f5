"""The timeline of a hart for a page: slices of calls in rows, as fine as a page of bounded size can have them; what is
missing; and the traps.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.decode.calls.slices.drawn import ShortCalls, SliceBegin, SliceEnd, SliceOwner, Slices, SliceTrack
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.calls.tree.programs import FunctionPrograms
from rvtrace_gdb.decode.history.events import LOSSES, EventKind
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.history.missing import missing_parts
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable

TICKS, INSTRUCTIONS = "ticks", "instructions"
"""The units of the axis."""
SLICES = 200_000
"""So many slices a page has at most, of all harts together: some 2 MB."""
MARKS = 4_000
"""So many stretches that are missing, and so many traps, a hart has at most; those nearest to each other are one."""
_FINEST = 1 << 17
"""So many slices of the least length fill a row."""
SHORT = 0
"""The number of the name of calls that are not drawn one by one."""
NO_SYMBOL = "[no symbol]"


class PageRow(NamedTuple):
    """Slices that do not overlap, in order: the functions at a *depth* of a *track*, 0: the outermost.

    *packed*: of each, as numbers of seven bits a byte: how far after the end of the one before it begins, how long it
    is, the number of its name, and how many calls in it are not drawn.
    """

    track: str
    depth: int
    slices: int
    packed: str


class PageMark(NamedTuple):
    """From *begin* to *end* something is missing, or traps came: so many *times*. *text*: the number of its text."""

    begin: int
    end: int
    text: int
    times: int


class PageTimeline(NamedTuple):
    """The timeline of a hart, from *begin* to *end* of its axis. *partial*: the trace has more.

    unit      of the axis: "ticks" or "instructions"
    least     what is shorter is not drawn: calls like that are counted
    names     of functions, each with whether a trap led to it
    missing   what the trace does not show; *texts* say why
    remarks   what else a reader should know
    """

    hart: int
    unit: str
    begin: int
    end: int
    partial: bool
    least: int
    names: list[tuple[str, bool]]
    rows: list[PageRow]
    missing: list[PageMark]
    traps: list[PageMark]
    texts: list[str]
    remarks: list[str]


def hart_timeline(
    calls: CallHistory,
    hart: int,
    slices: int = SLICES,
    progress: Progress = silent,
    part: range | None = None,
    owners: Sequence[SliceOwner] = (),
    threads: Mapping[int, str] | None = None,
) -> PageTimeline:
    """Return the timeline of a hart with that many slices at most. *part*: of these positions alone. *owners*: as in
    `Slices`. *threads*: what runs in contexts, by their scontext. Raises what *progress* raises.
    """
    history, axis = calls.history, HistoryAxis(calls.history)
    part = range(len(history)) if part is None else part
    begin, end = axis(part.start), axis(part.stop)
    least = 1 if axis.timed else 0
    if len(calls) * len(part) > slices * len(history):
        least = max((end - begin) // _FINEST, 1)
    while (rows := _rows_of(calls, part, axis, least, slices, owners, progress)) is None:
        least = 4 * max(least, 1)
    marks = _HartMarks(calls, part, axis)
    remarks = [f"{rows.unplaced} calls are too short to be drawn, and in no call that is."] if rows.unplaced else []
    if axis.goes_back:
        remarks.append("The times of the trace go back, so instructions are counted.")
    return PageTimeline(
        hart, TICKS if axis.timed else INSTRUCTIONS, begin, end, len(part) < len(history), least, rows.names,
        rows.packed(begin, threads or {}), marks.missing(), marks.traps(), marks.texts, remarks,
    )  # fmt: skip


def _rows_of(
    calls: CallHistory,
    part: range,
    axis: HistoryAxis,
    least: int,
    most: int,
    owners: Sequence[SliceOwner],
    progress: Progress,
) -> "_SliceRows | None":
    """Return the rows of slices that are not shorter than *least*, None if there are more than *most*."""

    def is_short(begin: int, end: int) -> bool:
        crosses = begin < part.start < end or begin < part.stop < end  # that is looked at more closely
        return not crosses and axis(end) - axis(begin) < least

    slices, rows = Slices(calls, part, is_short, owners), _SliceRows(calls, axis)
    for item in slices.drawn_items(progress):
        rows.add(item)
        if rows.slices > most:
            return None
    rows.unplaced = slices.unplaced
    return rows


_PageSlice = tuple[int, int, int, int]
"""Where it begins and ends, the number of its name, and how many calls in it are not drawn."""


class _SliceRows:
    """Rows under construction. *unplaced*: calls that are not drawn, and in no slice."""

    def __init__(self, calls: CallHistory, axis: HistoryAxis) -> None:
        self._calls, self._axis = calls, axis
        self._open: dict[SliceTrack, list[tuple[int, int]]] = {}
        self._rows: dict[tuple[SliceTrack, int], list[_PageSlice]] = {}
        self._programs = FunctionPrograms(calls.images)
        self._numbers: dict[tuple[int, int, bool], int] = {}
        self.names: list[tuple[str, bool]] = [("short calls", False)]
        self.slices = self.unplaced = 0

    def add(self, item: SliceBegin | SliceEnd | ShortCalls) -> None:
        """Add what is drawn next."""
        at, opened = self._axis(item.position), self._open.setdefault(item.track, [])
        if isinstance(item, SliceBegin):
            opened.append((at, self._name_number(item)))
            return
        depth = len(opened)
        if isinstance(item, SliceEnd):
            begin, name = opened.pop()
            depth, drawn = depth - 1, (begin, at, name, item.calls)
        else:
            drawn = (at, self._axis(item.end), SHORT, item.calls)
        self._rows.setdefault((item.track, depth), []).append(drawn)
        self.slices += 1

    def _name_number(self, item: SliceBegin) -> int:
        program = self._programs.number(self._calls.program_at(item.position), item.function)
        key = program, item.function, item.trap
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.names)
            self.names.append((self._name(program, item.function), item.trap))
        return number

    def _name(self, program: int, function: int) -> str:
        if function == UNKNOWN:
            return NO_SYMBOL
        symbol = self._programs.images[program].symbol(function)
        return f"{function:#x}" if symbol is None or symbol[1] else printable(symbol[0])

    def packed(self, start: int, threads: Mapping[int, str]) -> list[PageRow]:
        """Return the rows of an axis that begins at *start*, track by track, the outermost functions first."""
        order = {track: number for number, track in enumerate(self._open)}
        keys = sorted(self._rows, key=lambda key: (order[key[0]], key[1]))
        return [PageRow(_track_name(key[0], threads), key[1], *_packed(self._rows[key], start)) for key in keys]


def _packed(slices: list[_PageSlice], start: int) -> tuple[int, str]:
    made, last = bytearray(), start
    slices.sort()
    for begin, end, name, calls in slices:
        for number in (max(begin - last, 0), end - max(begin, last), name, calls):
            while number > 0x7F:
                made.append(0x80 | number & 0x7F)
                number >>= 7
            made.append(number)
        last = end
    return len(slices), b64encode(made).decode()


def _track_name(track: SliceTrack, threads: Mapping[int, str]) -> str:
    """Return what distinguishes a track: its task, if there are several, and its context."""
    context = track.context
    parts = [f"task {printable(track.owner or str(track.task))}"] if track.owner or track.task else []
    if context.scontext is not None:
        parts.append(threads.get(context.scontext) or f"context {context.scontext:#x}")
    parts += [f"guest {context.hcontext:#x}"] if context.hcontext is not None else []
    return ", ".join([*parts, "virtual"] if context.virtual else parts)


class _HartMarks:
    """The marks of a hart. *texts*: theirs, by number."""

    def __init__(self, calls: CallHistory, part: range, axis: HistoryAxis) -> None:
        self._history, self._part, self._axis = calls.history, part, axis
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def missing(self) -> list[PageMark]:
        """Return the gaps, and the losses whose place is not known, where they were noticed."""
        found = missing_parts(self._history, self._part)
        return self._spread(sorted(self._missing_mark(it.begin, it.end, it.event) for it in found))

    def _missing_mark(self, begin: int, end: int, event: Event) -> PageMark:
        since = max(begin - 1, 0) if self._axis.timed else begin  # since the last instruction before it
        text = event.as_gap if event.kind not in LOSSES else f"lost: {event.as_gap}"
        return PageMark(self._axis(since), self._axis(end), self._text(text), 1)

    def traps(self) -> list[PageMark]:
        """Return the traps."""
        found = self._history.events_between(self._part.start, self._part.stop + 1)
        events = (it for it in found if it.kind is EventKind.TRAP)
        places = ((self._axis(it.position), it.text) for it in events)
        return self._spread(PageMark(at, at, self._text(text), 1) for at, text in places)

    def _text(self, text: str) -> int:
        text = printable(text)
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def _spread(self, marks: Iterable[PageMark]) -> list[PageMark]:
        """Return marks; where there are too many, those near to each other are one, with the text of the first."""
        found = list(marks)
        whole = self._axis(self._part.stop) - self._axis(self._part.start)
        least = max(whole // MARKS, 1)
        while len(found) > MARKS:
            found = list(_joined_marks(found, least))
            least *= 2
        return found


def _joined_marks(marks: Iterable[PageMark], least: int) -> Iterator[PageMark]:
    last: PageMark | None = None
    for mark in marks:
        if last is not None and mark.begin - last.begin <= least:
            last = last._replace(end=max(last.end, mark.end), times=last.times + mark.times)
            continue
        if last is not None:
            yield last
        last = mark
    if last is not None:
        yield last
