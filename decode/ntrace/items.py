"""The items of a trace, read without the program: each message with its address and its time.

Addresses and times in most messages are relative to earlier ones (N-Trace 1.0, "Address Compression" and "Timestamp
Reporting"), so the last ones are kept for each source (`SourceState`). At the start in the middle of a trace, and after
lost bytes, they are unknown until the next synchronizing message.
"""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Note, NoteCause
from rvtrace_gdb.decode.item_texts import MOST_TEXTS, ItemText, TimedText, number_text
from rvtrace_gdb.decode.ntrace.clock import MessageClock, stamp_value
from rvtrace_gdb.decode.ntrace.framing import MAX_FRAME, FrameBatch, MessageFramer, frame_fault, idle_note, is_idle
from rvtrace_gdb.decode.ntrace.in_circuit import has_address, sent_addresses
from rvtrace_gdb.decode.ntrace.messages import MalformedMessage, Message, Tcode, parse
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.stepping.reports import LostBytes


def _may_have_address(message: Message) -> bool:
    return "faddr" in message.fields or "uaddr" in message.fields or has_address(message)


class Item(NamedTuple):
    """Consecutive bytes of a trace: a message, idle bytes, or bytes that are neither.

    offset   the trace offset of the first byte
    length   the number of bytes
    raw      the bytes; empty for idle bytes, and where they are not kept (an incomplete last message)
    message  the message, None if there is none
    problem  why there is no message; "" for idle bytes
    address  the address for F-ADDR or U-ADDR, including bit 0; None: no address, or not known
    target   a second address, relative to the first (SiFive's InCircuitTrace)
    time     the time for TSTAMP; None: no timestamp, or not known
    remark   a note on idle bytes that are not the standard's, or on a time that goes back
    """

    offset: int
    length: int
    raw: bytes = b""
    message: Message | None = None
    problem: str = ""
    address: int | None = None
    target: int | None = None
    time: int | None = None
    remark: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether the item is idle bytes between messages."""
        return self.message is None and not self.problem

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.length


class _MessageAddresses(NamedTuple):
    """The addresses of one message, as in `Item`. *reference*: the address to which the next U-ADDR is relative."""

    address: int | None
    target: int | None
    reference: int | None


class SourceState(NamedTuple):
    """The last address and the last time that a source has transmitted; None: not known."""

    reference: int | None = None
    time: int | None = None


_NOTHING = SourceState()
_REMEMBERED = 1 << 15  # frames
_SHORT = 64  # bytes; longer frames are rare and not remembered


class _ParsedFrame(NamedTuple):
    """A frame parsed by itself: its message or the problem, TSTAMP as bytes, and the address field."""

    message: Message | None
    problem: str
    stamp: bytes = b""
    sent: int | None = None


class _FrameText(NamedTuple):
    """The text of a message without TSTAMP: *text*, or what it is by the state of its source before it, with the state
    after it.
    """

    source: int
    text: str | None
    by_state: dict[SourceState, tuple[str, SourceState]]


class _StampedText(NamedTuple):
    """The pieces of the text of a message with TSTAMP, by the address before it, with the address behind it."""

    source: int
    by_reference: dict[int | None, tuple[TimedText, int | None]]


class TimedWording(Protocol):
    """Makes the texts of items, as `wording.Wording` does."""

    def text(self, item: Item, *, raw: bool = False) -> str: ...
    def timed_text(self, item: Item, body: bytes, *, raw: bool = False) -> TimedText | None: ...


class Itemizer:
    """Splits a trace, fed in pieces of any size, into items. Memory does not grow with the trace.

    options        as for the decoder; `src_id` is ignored
    xlen           32 or 64
    wrapped        whether the trace starts anywhere, as in a ring buffer that wrapped
    offset, known  continue where another itemizer was at this byte, between two items; *known* is its attribute
    """

    def __init__(
        self,
        options: Options,
        xlen: int = 64,
        *,
        wrapped: bool = False,
        offset: int = 0,
        known: dict[int, SourceState] | None = None,
    ) -> None:
        self.known: dict[int, SourceState] = dict(known or {})
        """The states of the sources by SRC."""
        self._options = options
        self._layouts = options.dialect.layouts
        self._mask = (1 << xlen) - 1
        self._sign = 1 << options.sent_address_bits - 1 if 0 < options.sent_address_bits < xlen else 0
        self._clock = MessageClock(options)
        self._frames = Computed(self._parse, _REMEMBERED)  # few messages of a trace are distinct
        self._texts: dict[bytes, _FrameText] = {}
        self._stamped_texts: dict[bytes, _StampedText] = {}
        """By the bytes before TSTAMP."""
        self._text_count = 0
        self._stamps = Computed(_stamp_number, _REMEMBERED)
        self._framer = MessageFramer(wrapped=wrapped)
        self._start = offset
        self._idle: Item | None = None  # idle bytes that may continue
        self._idle_noted = False

    def feed(self, data: bytes) -> Iterator[Item]:
        """Return the items that are complete with *data*."""
        for found in self._framer.feed(data):
            yield from self._lost_items(found) if isinstance(found, LostBytes) else self._batch(found)

    def finish(self) -> Iterator[Item]:
        """End the trace and return the remaining items."""
        yield from chain.from_iterable(map(self._lost_items, self._framer.finish()))
        yield from self._end_of_filling()

    def texts(self, data: bytes, wording: TimedWording, *, raw: bool = False) -> Iterator[ItemText]:
        """Return the items that are complete with *data* as *wording* says them. It must be the same in every call, as
        must *raw*: with the bytes.
        """
        for found in self._framer.feed(data):
            if isinstance(found, LostBytes):
                for item in self._lost_items(found):
                    yield item.offset, item.end, None, wording.text(item, raw=raw)
            else:
                yield from self._batch_texts(found, wording, raw)

    def _batch_texts(self, batch: FrameBatch, wording: TimedWording, raw: bool) -> Iterator[ItemText]:
        remembered, stamped, known = self._texts, self._stamped_texts, self.known
        end, frames = self._start + batch.offset, batch.frames()
        has_times = self._options.timestamps or stamped
        pairs = self._clock.split(frames) if has_times else zip(frames, repeat(b""))
        for frame, (body, stamp) in zip(frames, pairs, strict=False):
            offset, end = end, end + len(frame)
            if is_idle(frame):
                self._fill(offset, frame)
                continue
            if self._idle is not None:
                for idle in self._end_of_filling():
                    yield idle.offset, idle.end, None, wording.text(idle, raw=raw)
            if frame in remembered:
                source, line, by_state = remembered[frame]
                if line is None and (state := known.get(source, _NOTHING)) in by_state:
                    line, known[source] = by_state[state]
                if line is not None:
                    yield offset, end, source, line
                    continue
            elif stamp and body in stamped and len(frame) <= _SHORT:
                text = stamped[body]
                line = self._stamped_line(text, body, stamp)
                if line is not None:
                    yield offset, end, text.source, line
                    continue
            yield self._item_text(offset, frame, wording, raw)

    def _stamped_line(self, text: _StampedText, body: bytes, stamp: bytes) -> str | None:
        """Return the text of a message with TSTAMP; None: it is not remembered, or its time is out of the ordinary."""
        before = self.known.get(text.source, _NOTHING)
        if before.reference not in text.by_reference:
            return None
        pieces, reference = text.by_reference[before.reference]
        value, shown = self._stamps[stamp]
        self._clock.now = before.time
        time = self._clock.advance(body[0], value)
        if time is None or (before.time is not None and time < before.time):
            return None
        self.known[text.source] = SourceState(reference, time)
        return pieces.text(shown, number_text(time), stamp)

    def _item_text(self, offset: int, frame: bytes, wording: TimedWording, raw: bool) -> ItemText:
        """Return the text of a message that is not remembered, or of bytes that are none, and remember it."""
        read = self._frames[frame] if len(frame) <= _SHORT else _ParsedFrame(None, "")
        before = _NOTHING if read.message is None else self.known.get(read.message.src, _NOTHING)
        item = self._item(offset, frame)
        line = wording.text(item, raw=raw)
        if read.stamp:
            self._remember_pieces(item, before.reference, frame[: -len(read.stamp)], wording, raw)
        elif read.message is not None and read.message.tstamp is None:
            self._remember_text(item, before, line)
        return offset, item.end, None if item.message is None else item.message.src, line

    def _remember_text(self, item: Item, before: SourceState, line: str) -> None:
        """Remember the text of a message without TSTAMP; with its address where the state *before* matters."""
        assert item.message is not None
        source = item.message.src
        self._make_room()
        if item.message.tcode != Tcode.ERROR and not _may_have_address(item.message):
            self._texts[item.raw] = _FrameText(source, line, {})
        elif before.time is None:  # behind messages with times hardly any two states are the same
            by_state = self._texts.setdefault(item.raw, _FrameText(source, None, {})).by_state
            by_state[before] = line, self.known[source]

    def _remember_pieces(
        self, item: Item, reference: int | None, body: bytes, wording: TimedWording, raw: bool
    ) -> None:
        """Remember the pieces of the text of a message with TSTAMP."""
        pieces = wording.timed_text(item, body, raw=raw)
        if pieces is not None and item.message is not None:
            source = item.message.src
            self._make_room()
            by_reference = self._stamped_texts.setdefault(body, _StampedText(source, {})).by_reference
            by_reference[reference] = pieces, self.known[source].reference

    def _make_room(self) -> None:
        """Count a text that is remembered; forget all others where they are too many."""
        if self._text_count >= MOST_TEXTS:
            self._texts.clear()
            self._stamped_texts.clear()
            self._text_count = 0
        self._text_count += 1

    def _batch(self, batch: FrameBatch) -> Iterator[Item]:
        offset = self._start + batch.offset
        for frame in batch.frames():
            if is_idle(frame):
                self._fill(offset, frame)
            else:
                if self._idle is not None:
                    yield from self._end_of_filling()
                yield self._item(offset, frame)
            offset += len(frame)

    def _fill(self, offset: int, frame: bytes) -> None:
        """Add idle bytes, which are one item up to the next message. A note on them is made once in a trace."""
        before = self._idle or Item(offset, 0)
        note = None if self._idle_noted else idle_note(frame)
        text = "" if note is None else fact_text(note)
        self._idle_noted |= bool(text)
        self._idle = before._replace(length=before.length + len(frame), remark=before.remark or text)

    def _lost_items(self, lost: LostBytes) -> Iterator[Item]:
        yield from self._end_of_filling()
        self.known.clear()
        why = lost.why or "the start of the buffer, inside a message"
        yield Item(self._start + lost.offset, lost.length, problem=why)

    def _end_of_filling(self) -> Iterator[Item]:
        if self._idle is not None:
            idle, self._idle = self._idle, None
            yield idle

    def _item(self, offset: int, frame: bytes) -> Item:
        read = self._frames[frame] if len(frame) <= _SHORT else self._parse(frame)
        message = read.message
        if message is None:
            self.known.clear()
            return Item(
                offset, len(frame), frame if len(frame) <= MAX_FRAME else b"", message=None, problem=read.problem
            )
        before = self.known.get(message.src) or _NOTHING
        time = self._time(frame, read.stamp, before.time) if read.stamp else None
        address, target, reference = self._message_addresses(read.sent, message, before.reference)
        back = time is not None and before.time is not None and time < before.time
        remark = fact_text(Note(NoteCause.TIME_BACK, (before.time or 0, time or 0))) if back else ""
        self.known[message.src] = SourceState(reference, before.time if message.tstamp is None else time)
        return Item(
            offset=offset,
            length=len(frame),
            raw=frame,
            message=message,
            problem="",
            address=address,
            target=target,
            time=time,
            remark=remark,
        )

    def _parse(self, frame: bytes) -> _ParsedFrame:
        """Parse a frame by itself."""
        why = frame_fault(frame)
        if why is not None:
            return _ParsedFrame(None, why)
        try:
            message = parse(frame, self._options.src_bits, self._layouts)
        except MalformedMessage as error:
            return _ParsedFrame(None, str(error))
        stamp = b"" if message.tstamp is None else self._clock.split([frame])[0][1]
        return _ParsedFrame(message, "", stamp, self._sent_address(frame, message))

    def _time(self, frame: bytes, stamp: bytes, before: int | None) -> int | None:
        self._clock.now = before
        return self._clock.advance(frame[0], stamp_value(stamp))

    def _message_addresses(self, sent: int | None, message: Message, reference: int | None) -> _MessageAddresses:
        if sent is not None:
            before = 0 if "faddr" in message.fields else reference
            address = None if before is None else self._full_address(sent, before)
            return _MessageAddresses(address, None, address)
        if has_address(message):
            return self._in_circuit(message, reference)
        return _MessageAddresses(None, None, None if message.tcode == Tcode.ERROR else reference)

    def _in_circuit(self, message: Message, reference: int | None) -> _MessageAddresses:
        """Return the addresses of an InCircuitTrace; the last one is that to which the next address is relative."""
        addresses = sent_addresses(message)
        before = 0 if addresses is not None and addresses.full else reference
        if addresses is None or before is None:
            return _MessageAddresses(None, None, None)
        pc = self._full_address(addresses.pc, before)
        target = None if addresses.target is None else self._full_address(addresses.target, pc)
        return _MessageAddresses(pc, target, pc if target is None else target)

    def _sent_address(self, frame: bytes, message: Message) -> int | None:
        """Return the address field, if any, with the high bits that the encoder left out (trTeInstExtendAddrMSB)."""
        name = "faddr" if "faddr" in message.fields else "uaddr"
        if self._options.extend_addr_msb and name in message.fields:
            message = parse(frame, self._options.src_bits, self._layouts, extend_addr_msb=True)
        return message.fields.get(name)

    def _full_address(self, sent: int, reference: int) -> int:
        address = reference ^ sent << 1
        if self._sign:  # sent in fewer bits than XLEN: the high bits are copies of the highest one sent
            address &= 2 * self._sign - 1
            address = (address ^ self._sign) - self._sign
        return address & self._mask


def _stamp_number(stamp: bytes) -> tuple[int, str]:
    """Return the value of a TSTAMP, and how it is shown."""
    value = stamp_value(stamp)
    return value, number_text(value)
