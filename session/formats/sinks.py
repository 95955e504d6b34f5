"""What the bytes of one sink hold: the histories of the harts whose encoders feed it, and its messages by number.

What a message or packet stands for depends on those before it, and where a packet begins depends on the
encapsulation. So one pass over the trace takes a note every so often of how things stand; a page of messages is
then made from the note before it. `Messages` does so for N-Trace, `Packets` for E-Trace.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.controlregs.ctr.settings import CtrInForce
from rvtrace_gdb.decode.history.builder import Streams
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.items import Item, Itemizer, SourceState
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.etrace_settings import ETrace
from rvtrace_gdb.session.capture.model import Captured, CapturedEncoder, CapturedSink, CapturedTandem, TandemPort
from rvtrace_gdb.session.errors import NoTrace, Unsupported
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.ctr import Entries
from rvtrace_gdb.session.formats.registry import AnyHow, AnyItemizer, How, Unfinished, itemizer
from rvtrace_gdb.session.formats.tandem import Groups
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable, warning

Begun = dict[int, Unfinished]
"""What is being decoded of several sinks, by which it is, counted from 0."""


@dataclass(frozen=True)
class Harts:
    """What ran, by hart, and what became of the sinks' bytes. *notes*: what the user must know; no hart is missing.

    *sinks*: which of several sinks, counted from 0, a hart's history comes from; 0 for those that are not in it.
    """

    histories: dict[int, History]
    accounting: Accounting
    notes: tuple[str, ...] = ()
    sinks: Mapping[int, int] = field(default_factory=dict)

    def number(self, wanted: int | None, likely: int | None = None) -> int:
        """The hart that is shown: *wanted*, else *likely* if it is here, else the first. Raises `NoTrace`."""
        if wanted is None:
            return likely if likely is not None and likely in self.histories else min(self.histories)
        if wanted not in self.histories:
            there = ", ".join(map(str, sorted(self.histories)))
            raise NoTrace(f"hart {wanted} is not in this trace, which has hart {there}")
        return wanted

    def of_thread(self, hart: int | None, wanted: int | None) -> int:
        """Whose past a thread of a debugger goes back in: that of the hart it is, if it was traced; else as `number`.

        Raises `NoTrace`.
        """
        return hart if hart is not None and hart in self.histories else self.number(wanted, hart)


def feeding(sink: CapturedSink, encoders: tuple[CapturedEncoder, ...]) -> list[CapturedEncoder]:
    """The encoders that feed *sink*. Raises `NoTrace` when none is known."""
    found = [encoder for encoder in encoders if encoder.in_force.name in sink.encoders]
    if not found:
        raise NoTrace(printable(f"no encoder is known that feeds {sink.in_force.name}"))
    return found


def how_of(sink: Captured, encoders: tuple[CapturedEncoder, ...]) -> AnyHow:
    """How to read what a sink holds. Raises as `feeding` and `options_of`."""
    return options_of(feeding(sink, encoders)) if isinstance(sink, CapturedSink) else sink.in_force


def options_of(encoders: list[CapturedEncoder]) -> How:
    """How to read what *encoders* send into one sink, whoever sent it. Raises `Unsupported`."""
    all_options = registry.with_one_period([registry.how_of(encoder) for encoder in encoders])
    for encoder, options in zip(encoders, all_options, strict=True):
        if options != all_options[0]:
            names = f"{encoders[0].in_force.name} and {encoder.in_force.name}"
            raise Unsupported(printable(f"{names} feed one sink and are set up differently: that cannot be read"))
    return all_options[0]


def decode(
    sink: Captured,
    encoders: tuple[CapturedEncoder, ...],
    program: Program,
    *,
    stop_at_error: bool = False,
    progress: Progress = silent,
    begun: Begun | None = None,
    number: int = 0,
) -> Harts:
    """The histories of all harts whose encoders feed *sink*; a hart of which nothing was found has an empty one.

    *begun*: what was interrupted before, of the same sinks and the same program; what is begun now goes there, under
    the *number* of the sink.

    Raises `Unsupported`, `NoTrace`, and what *progress* raises.
    """
    if not isinstance(sink, CapturedSink):
        wrapped = isinstance(sink, CapturedTandem) and sink.wrapped
        streams = _result(sink, program, sink.in_force, wrapped, stop_at_error, progress, begun, number)
        return Harts({sink.hart: streams.histories[0]}, streams.accounting)
    fed = feeding(sink, encoders)
    how = options_of(fed)
    found = _result(sink, program, how, sink.wrapped, stop_at_error, progress, begun, number)
    by_source = dict(found.histories)
    sources = _sources(fed, registry.tells_sources(how), by_source)
    histories = {hart: by_source.pop(src) if src in by_source else _nothing() for src, hart in sources}
    return Harts(histories, found.accounting, tuple(_notes(fed, registry.tells_sources(how), by_source)))


def _result(
    sink: Captured,
    program: Program,
    how: AnyHow,
    wrapped: bool,
    stop_at_error: bool,
    progress: Progress,
    begun: Begun | None,
    number: int,
) -> Streams:
    found = None if begun is None else begun.get(number)
    if found is None:
        found = registry.begun(sink.data, program, how, wrapped=wrapped, stop_at_error=stop_at_error)
    if begun is not None:
        begun[number] = found
    return found.result(progress)


def decode_all(
    sinks: Sequence[Captured],
    encoders: tuple[CapturedEncoder, ...],
    program: Program,
    *,
    stop_at_error: bool = False,
    progress: Progress = silent,
    begun: Begun | None = None,
) -> Harts:
    """As `decode`, of all *sinks*. Of a hart that is in several of them, what says most is shown."""
    histories: dict[int, History] = {}
    places: dict[int, int] = {}
    several: set[int] = set()
    notes: list[str] = []
    account = Accounting(0, 0, 0, 0)
    for number, sink in enumerate(sinks):
        found = decode(
            sink, encoders, program, stop_at_error=stop_at_error, progress=progress, begun=begun, number=number
        )
        account = Accounting(*map(sum, zip(account, found.accounting, strict=True)))
        notes += found.notes
        for hart, history in found.histories.items():
            if hart in histories:
                several.add(hart)
            if hart not in histories or history.instructions > histories[hart].instructions:
                histories[hart], places[hart] = history, number
    if several:
        harts = f"hart{'s' * (len(several) > 1)} {', '.join(map(str, sorted(several)))}"
        notes.append(f"note: the trace of {harts} is in several sinks: of each hart the longest history is shown")
    return Harts(dict(sorted(histories.items())), account, tuple(notes), places)


def sources(fed: list[CapturedEncoder], told: bool) -> list[tuple[int, int]]:
    """(source, hart) of the encoders that feed a sink, before anything is decoded. *told*: messages say the source."""
    return _sources(fed, told, {})


def _sources(fed: list[CapturedEncoder], told: bool, found: dict[int, History]) -> list[tuple[int, int]]:
    """(source, hart) of the encoders. *told*: messages say it.

    An encoder that is alone may send another source than its registers say; what a user says (no base) is meant.
    """
    if not told:
        return [(0, fed[0].hart)]
    own = [(_source(encoder), encoder.hart) for encoder in fed]
    if len(own) == 1 and fed[0].in_force.base and own[0][0] not in found and found:
        return [(max(found, key=lambda src: found[src].instructions), fed[0].hart)]
    return own


def _source(encoder: CapturedEncoder) -> int:
    """What it sends as its source: as much of trTeSrcID as fits, unless it is known better."""
    known = encoder.unregistered.etrace.get("src_id")
    if isinstance(known, int):
        return known
    return encoder.in_force.src_id & (1 << encoder.in_force.src_bits) - 1


def _nothing() -> History:
    return History([], array("Q"), 0, (), (), Accounting(0, 0, 0, 0))


def _notes(fed: list[CapturedEncoder], told: bool, strangers: dict[int, History]) -> list[str]:
    lines = []
    if not told and len(fed) > 1:
        names = ", ".join(encoder.in_force.name for encoder in fed)
        lines.append(warning(f"{names} feed one sink, without SRC in their messages: their harts cannot be told apart"))
    unknown = {src: history.instructions for src, history in strangers.items() if history.instructions}
    if unknown:
        what = f"{sum(unknown.values())} instructions of SRC {', '.join(map(str, sorted(unknown)))}"
        lines.append(warning(f"{what} are in the trace too, which no known encoder sends"))
    return [printable(line) for line in lines]


_STRIDE = 1024  # items from note to note
_SLICE = 1 << 16  # bytes looked at between two signs of life


class _Note(NamedTuple):
    """How things stand before an item that starts at *offset*."""

    offset: int
    known: dict[int, SourceState]


class Messages:
    """All items of *data* (messages, filling, bytes that are neither), numbered from 1. Raises what *progress* raises.

    *options*: as for the decoder; *wrapped*: the trace starts anywhere.
    """

    def __init__(
        self, data: bytes, options: Options, xlen: int, *, wrapped: bool = False, progress: Progress = silent
    ) -> None:
        self.data, self.how = data, options
        self._xlen, self._wrapped = xlen, wrapped
        self._notes = [_Note(0, {})]
        itemizer = Itemizer(options, xlen, wrapped=wrapped)
        self._count = 0
        for item in _all(itemizer, data, 0, progress):
            self._count += 1
            if self._count % _STRIDE == 0:
                self._notes.append(_Note(item.end, dict(itemizer.known)))

    def __len__(self) -> int:
        return self._count

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Item]]:
        """(number, item) for the numbers *begin* to *end* - 1."""
        note = (begin - 1) // _STRIDE
        first = note * _STRIDE + 1
        yield from islice(enumerate(self._from(note), first), begin - first, max(end - first, 0))

    def number_at(self, offset: int) -> int:
        """The number of the item that byte *offset* is part of; one more than there are when it is behind the end."""
        note = bisect_right(self._notes, offset, key=lambda note: note.offset) - 1
        for number, item in enumerate(self._from(note), note * _STRIDE + 1):
            if offset < item.end:
                return number
        return self._count + 1

    def _from(self, note: int) -> Iterator[Item]:
        offset, known = self._notes[note]
        wrapped = self._wrapped and not note
        return _all(Itemizer(self.how, self._xlen, wrapped=wrapped, offset=offset, known=known), self.data, offset)


def _all(itemizer: Itemizer, data: bytes, offset: int, progress: Progress = silent) -> Iterator[Item]:
    for start in range(offset, len(data), _SLICE):
        yield from itemizer.feed(data[start : start + _SLICE])
        progress("reading messages", start, len(data))
    yield from itemizer.finish()


_PACKET_SLICE = 1 << 14  # bytes between two copies


class Numbered(Protocol):
    """Messages or packets by number, from 1 on."""

    data: bytes

    @property
    def how(self) -> AnyHow: ...
    def __len__(self) -> int: ...
    def items(self, begin: int, end: int) -> Iterator[tuple[int, Any]]: ...
    def number_at(self, offset: int) -> int: ...


def numbered(data: bytes, how: AnyHow, xlen: int, *, wrapped: bool = False, progress: Progress = silent) -> Numbered:
    """The messages of a trace of any format. Raises what *progress* raises."""
    if isinstance(how, CtrInForce):
        return Entries(data, how)
    if isinstance(how, TandemPort):
        return Groups(data, how, wrapped=wrapped, progress=progress)
    if isinstance(how, ETrace):
        return Packets(data, how, xlen, wrapped=wrapped, progress=progress)
    return Messages(data, how, xlen, wrapped=wrapped, progress=progress)


class _PacketNote(NamedTuple):
    """What takes the trace apart, before byte *at*. Item *number* is the next, and does not begin before *offset*."""

    at: int
    number: int
    offset: int
    itemizer: AnyItemizer


class Packets:
    """All items of *data* (packets, filling, bytes that are neither), numbered from 1. Raises what *progress* raises.

    *how*: it was made; *wrapped*: it starts anywhere.
    """

    def __init__(
        self, data: bytes, how: ETrace, xlen: int, *, wrapped: bool = False, progress: Progress = silent
    ) -> None:
        self.data, self.how = data, how
        self._notes: list[_PacketNote] = []
        self._count = end = 0
        taker = itemizer(how, xlen, wrapped=wrapped)
        for at in range(0, len(data), _PACKET_SLICE):
            self._notes.append(_PacketNote(at, self._count + 1, end, deepcopy(taker)))
            for item in taker.feed(data[at : at + _PACKET_SLICE]):
                self._count += 1
                end = item.end
            progress("reading packets", at, len(data))
        self._count += sum(1 for _ in taker.finish())

    def __len__(self) -> int:
        return self._count

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Any]]:
        """(number, item) for the numbers *begin* to *end* - 1."""
        note = bisect_right(self._notes, begin, key=attrgetter("number")) - 1
        if note >= 0:
            first = self._notes[note].number
            yield from islice(enumerate(self._from(note), first), begin - first, max(end - first, 0))

    def number_at(self, offset: int) -> int:
        """The number of the item that byte *offset* is part of; one more than there are when it is behind the end."""
        note = bisect_right(self._notes, offset, key=attrgetter("offset")) - 1
        if note >= 0:
            for number, item in enumerate(self._from(note), self._notes[note].number):
                if offset < item.end:
                    return number
        return self._count + 1

    def _from(self, note: int) -> Iterator[Any]:
        start = self._notes[note]
        taker = deepcopy(start.itemizer)
        for at in range(start.at, len(self.data), _PACKET_SLICE):
            yield from taker.feed(self.data[at : at + _PACKET_SLICE])
        yield from taker.finish()
