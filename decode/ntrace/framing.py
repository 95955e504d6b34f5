"""The split of a byte stream into frames, and what is evaluated on whole frames: missing messages.

A frame is everything up to and including a byte with MSEO 11. MSEO is the low two bits of each byte: 00 continues, 01
ends a field, 11 ends the message, 10 is reserved; 0xFF between messages is idle (N-Trace 1.0.0-rc7, 3.1). Some encoders
send other single bytes with MSEO 11 while idle; they are recognized because no message is one byte long. The frames do
not depend on the pieces in which the bytes arrive. One regular expression finds all frames, so that the cost per byte
is that of the C library.

`MessagePeriodChecker` detects messages that are missing, or came twice, where nothing else reveals it: there are fewer
or more messages from one synchronization to the next than the encoder's period demands. Source: RISC-V Trace Control
Interface 1.0, trTeInstSyncMode and trTeInstSyncMax: "Generate synchronization when count reaches
2^(trTeInstSyncMax+4)"; the count restarts with each synchronizing message. So a periodic synchronization follows that
many messages, or more if it waited for a branch: it is part of the next branch message at the latest. The specification
does not say whether the synchronizing message itself is counted: one message fewer is accepted until the trace has
shown that this encoder does not count it, and so is a branch message or two more.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.history.checkpoints import Checkpoint, Resumable, attributes, set_attributes
from rvtrace_gdb.decode.history.events import Note, NoteCause
from rvtrace_gdb.decode.ntrace.messages import LAYOUTS, MAX_SRC_BITS, MDO_BITS, TCODE_BITS, Sync, Tcode
from rvtrace_gdb.decode.ntrace.offsets import ByteOffsets, FrameStarts, Offsets, SingleOffset
from rvtrace_gdb.decode.stepping.reports import LostBytes, MessageCountJudge

MAX_FRAME = 4096
"""The longest message accepted, in bytes.

The longest of the standard has 38; vendor messages may be longer (table 8).
"""

_SLICE = 1 << 16  # bytes processed at once: limits memory, and the time between two progress reports
_MSEO = bytes(byte & 0b11 for byte in range(256))


def _any_of(*mseo: int) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % byte for byte in range(256) if byte & 0b11 in mseo) + b"]"


_CONTINUE, _INNER, _END, _NOT_END = _any_of(0b00), _any_of(0b00, 0b01), _any_of(0b11), _any_of(0b00, 0b01, 0b10)
_MESSAGE = re.compile(_CONTINUE + _INNER + b"{0,%d}" % (MAX_FRAME - 2) + _END)
_FRAME = re.compile(_MESSAGE.pattern + rb"|\xff+|" + _END + b"|" + _NOT_END + b"+" + _END)

_UNDAMAGED = re.compile(b"(?:" + _MESSAGE.pattern + b"|" + _END + b")*+")


class FrameBatch(NamedTuple):
    """Consecutive frames without any byte between them. *offset*: the trace offset of the first byte."""

    offset: int
    data: bytes

    def frames(self) -> list[bytes]:
        """Return the frames one by one."""
        return split_frames(self.data)


def split_frames(data: bytes) -> list[bytes]:
    """Return the frames in *data*, which ends with one."""
    return _FRAME.findall(data)


def first_frame(data: bytes, at: int) -> bytes:
    """Return the frame in *data* that starts at byte *at*."""
    found = _FRAME.match(data, at)
    return data[at:] if found is None else found[0]


def is_idle(frame: bytes) -> bool:
    """Whether a frame is idle bytes between messages."""
    return frame[0] & 0b11 == 0b11


def idle_note(frame: bytes) -> Note | None:
    """Return the note on idle bytes that are not the standard's 0xFF, else None."""
    return None if frame[0] == 0xFF else Note(NoteCause.ODD_IDLE, (frame[0],))


def frame_fault(frame: bytes) -> str | None:
    """Return why a frame that is not idle cannot be a message; None if it can."""
    if _MESSAGE.fullmatch(frame):
        return None
    if len(frame) > MAX_FRAME:
        return f"no end of message within {MAX_FRAME} bytes"
    if 0b10 in frame.translate(_MSEO):
        return "reserved MSEO value 10"
    return "bytes that do not start a message"


def faulty_frames(frames: Sequence[bytes]) -> list[int]:
    """Return the indices of the frames that are neither a message nor idle."""
    if _UNDAMAGED.fullmatch(b"".join(frames)):
        return []
    return [i for i, frame in enumerate(frames) if not is_idle(frame) and frame_fault(frame)]


_FRAMER_STATE = ("total", "_seeking", "_tail", "_dropped")


class MessageFramer(Resumable):
    """Splits a byte stream into frames. The frames do not depend on the pieces in which the bytes arrive.

    With *wrapped* the stream starts anywhere (a ring buffer that wrapped), so the bytes up to the first end of a
    message are dropped.
    """

    def __init__(self, *, wrapped: bool = False) -> None:
        self.total = 0
        """The number of bytes fed so far."""
        self._seeking = wrapped
        self._tail = bytearray()  # the start of a frame whose end has not come yet
        self._dropped = 0  # number of bytes of that frame that were discarded

    def feed(self, data: bytes) -> Iterator[FrameBatch | LostBytes]:
        """Return the frames that are complete with *data*."""
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def finish(self) -> Iterator[LostBytes]:
        """End the stream. Returns the incomplete last message, if any, as a loss."""
        length = len(self._tail) + self._dropped
        if length:
            why = f"no end of message within {MAX_FRAME} bytes" if length > MAX_FRAME else "the last message is cut off"
            yield LostBytes(self.total - length, length, why)
        self._tail.clear()
        self._dropped = 0

    def checkpoint(self) -> Checkpoint:
        """Return where the stream is, see `decode.history.checkpoints`."""
        return attributes(self, *_FRAMER_STATE)

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another framer was."""
        set_attributes(self, checkpoint, *_FRAMER_STATE)
        self._tail = bytearray(self._tail)

    def begin_at(self, offset: int) -> None:
        """Begin at a byte that may be inside a message."""
        self.total, self._seeking = offset, True

    def begin_with_message(self) -> None:
        """Begin at a byte with which a message begins, after `finish`."""
        self._seeking = False

    def _feed(self, data: bytes) -> Iterator[FrameBatch | LostBytes]:
        mseo = data.translate(_MSEO)
        offset = self.total - len(self._tail) - self._dropped
        self.total += len(data)
        if self._seeking or self._dropped:
            end = mseo.find(0b11) + 1
            if not end:
                self._keep_incomplete(data)
                return
            length = len(self._tail) + self._dropped + end
            seeking, self._seeking, self._dropped = self._seeking, False, 0
            self._tail.clear()
            yield LostBytes(offset, length, "" if seeking else f"no end of message within {MAX_FRAME} bytes")
            offset, data, mseo = offset + length, data[end:], mseo[end:]
        end = mseo.rfind(0b11) + 1
        if end:
            whole = bytes(self._tail) + data[:end]
            self._tail.clear()
            yield FrameBatch(offset, whole)
        self._keep_incomplete(data[end:])

    def _keep_incomplete(self, rest: bytes) -> None:
        """Keep the start of an incomplete frame, unless it is too long for a message."""
        self._tail += rest
        if len(self._tail) > MAX_FRAME:
            self._dropped += len(self._tail)
            self._tail.clear()


_SYNC_BITS = 4
_HEAD = -(-(TCODE_BITS + MAX_SRC_BITS + _SYNC_BITS) // MDO_BITS)  # bytes that hold TCODE, SRC and SYNC
_SYNC_BYTES = bytes(tcode << 2 for tcode, layout in LAYOUTS.items() if layout.synchronizes)
_OWNERSHIP = Tcode.OWNERSHIP << 2
_BRANCHES = tuple(
    tcode << 2 for tcode in (Tcode.DIRECT_BRANCH, Tcode.INDIRECT_BRANCH, Tcode.INDIRECT_BRANCH_HIST)
)  # fmt: skip
_IDLE_BYTES = bytes(range(0b11, 256, 4))
_SYNCS = re.compile(b"[" + re.escape(_SYNC_BYTES) + b"]")
_ENDS = re.escape(bytes(range(0b11, 256, 4)))
_LATER_SYNC = re.compile(b"[" + re.escape(_SYNC_BYTES) + b"](?<=[" + _ENDS + b"].)", re.DOTALL)
_IDLE = bytes(byte & 0b11 == 0b11 for byte in range(256))
_OTHER_THAN_OWNERSHIP = re.compile(
    b"[" + re.escape(bytes(byte for byte in range(0, 256, 4) if byte != _OWNERSHIP)) + b"]"
)
_FIRST = itemgetter(0)
_HEADS_REMEMBERED = 1 << 12


class OddMessageStretch(NamedTuple):
    """A stretch with too few or too many *messages*, from the synchronizing message at byte *start* to that at *end*.

    *at*: the index of the frame before which the loss is to be reported.
    """

    start: int
    end: int
    messages: int
    at: int


_PERIOD_STATE = ("_count", "_flow_messages", "_late")


class MessagePeriodChecker(Resumable):
    """Counts the messages of one hart whose encoder synchronizes after every *period* messages."""

    def __init__(self, period: int, src_bits: int) -> None:
        self._judge = MessageCountJudge(period)
        self._src_bits = src_bits
        self._count: int | None = None  # since the last synchronizing message, None before the first one
        self._flow_messages = 0  # of these, those that are not Ownership messages
        self._late = 0  # branch messages after the period
        self._last_sync: tuple[Offsets, int] | None = None  # its position; the offset is determined only if needed
        self._pending: OddMessageStretch | None = None  # confirmed unless another synchronization follows immediately
        self._cached: dict[bytes, int] = {}

    def checkpoint(self) -> Checkpoint:
        """Return what was counted, see `decode.history.checkpoints`."""
        sync = None if self._last_sync is None else self._last_sync[0].offset_of(self._last_sync[1])
        pending = None if self._pending is None else list(self._pending)
        return attributes(self, *_PERIOD_STATE) | {"judge": self._judge.checkpoint(), "sync": sync, "pending": pending}

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another checker was."""
        set_attributes(self, checkpoint, *_PERIOD_STATE)
        self._judge.go_on_from(checkpoint["judge"])
        sync, pending = checkpoint["sync"], checkpoint["pending"]
        self._last_sync = None if sync is None else (SingleOffset(sync), 0)
        self._pending = None if pending is None else OddMessageStretch(*pending)

    def begin_like(self, checkpoint: Checkpoint) -> None:
        """Begin in the middle of a trace, with what another checker knew of the encoder."""
        self._judge.go_on_from(checkpoint["judge"])

    def check(self, frames: Sequence[bytes], offsets: Offsets) -> Iterator[OddMessageStretch]:
        """Return the stretches that lack messages, or have too many, as far as *frames* show it."""
        if not frames or self.count_regular(b"".join(frames), ByteOffsets(frames, offsets)):
            return
        heads = bytes(map(_FIRST, frames))
        idle = heads.translate(_IDLE)
        first = -1  # index of the last synchronizing message in *frames*
        yield from self._confirmed(heads, 0)
        for found in _SYNCS.finditer(heads):
            at = found.start()
            self._count_messages(heads, idle, first + 1, at)
            where, index = (offsets, first) if first >= 0 or self._last_sync is None else self._last_sync
            if self._count is not None and self._late:
                if self._judge.is_long(self._late):
                    yield OddMessageStretch(where.offset_of(index), offsets.offset_of(at), self._count, at)
            elif self._count is not None and self._flow_messages and self._is_short(self._count, frames[at]):
                self._pending = OddMessageStretch(where.offset_of(index), offsets.offset_of(at), self._count, at)
                yield from self._confirmed(heads, at + 1)
            self._count = self._flow_messages = self._late = 0
            first = at
        self._count_messages(heads, idle, first + 1, len(frames))
        if first >= 0:
            self._last_sync = offsets, first

    def count_regular(self, raw: bytes, offset_of: Callable[[int], int]) -> bool:
        """Count all messages in *raw* at once if no frame is idle and no stretch is too short; else return False.

        *offset_of* says where in the trace a byte comes from.
        """
        ends = raw.translate(_IDLE)
        if self._pending is not None or ends[0] or b"\1\1" in ends:
            return False
        syncs = [found.start() for found in _LATER_SYNC.finditer(raw)]
        if raw[0] in _SYNC_BYTES:
            syncs.insert(0, 0)
        before, *others = (ends.count(1, start, stop) for start, stop in pairwise([0, *syncs, len(raw)]))
        first = None if self._count is None else self._count + before
        counts = [first] + [count - 1 for count in others]
        closed = [(count, at) for count, at in zip(counts, syncs, strict=False) if count is not None]
        periodic = [count for count, at in closed if self._sync_of(raw[at : at + _HEAD]) == Sync.PERIODIC]
        if any(count < self._judge.least for count in periodic):
            return False
        if self._late or max((count for count in counts if count is not None), default=0) > self._judge.least:
            return False
        self._judge.add(len(periodic), periodic.count(self._judge.least))
        if syncs:
            self._count = self._flow_messages = self._late = 0
            self._last_sync = FrameStarts(offset_of), syncs[-1]
        rest = split_frames(raw[syncs[-1] :])[1:] if syncs else split_frames(raw)
        heads = bytes(map(_FIRST, rest))
        self._count_messages(heads, bytes(len(heads)), 0, len(heads))
        return True

    def finish(self, end: int) -> Iterator[OddMessageStretch]:
        """End the trace at byte *end*. Returns the stretch that is pending, and the last one if it is too long."""
        if self._pending is not None:
            yield self._pending
        if self._count is not None and self._last_sync is not None and self._judge.is_long(self._late):
            where, index = self._last_sync
            yield OddMessageStretch(where.offset_of(index), end, self._count, -1)

    def _count_messages(self, heads: bytes, idle: bytes, start: int, stop: int) -> None:
        """Count the messages of the frames from *start* to *stop* - 1."""
        if self._count is not None:
            messages = stop - start - idle.count(1, start, stop)
            if self._count + messages > self._judge.least:
                sent = heads[start:stop].translate(None, _IDLE_BYTES)
                self._late += sum(map(sent[max(self._judge.least - self._count, 0) :].count, _BRANCHES))
            self._count += messages
            self._flow_messages += messages - heads.count(_OWNERSHIP, start, stop)

    def _confirmed(self, heads: bytes, start: int) -> Iterator[OddMessageStretch]:
        """Return the pending stretch if the next message does not synchronize.

        Two synchronizing messages in a row are not periodic: a trap right after a trap return has them ("Corner
        Cases").
        """
        following = _OTHER_THAN_OWNERSHIP.search(heads, start) if self._pending is not None else None
        if following is not None and self._pending is not None:
            pending, self._pending = self._pending, None
            if following[0] not in _SYNC_BYTES:
                yield pending._replace(at=following.start())

    def _is_short(self, messages: int, closing: bytes) -> bool:
        """Whether messages are missing, as far as this encoder has shown that it observes its period."""
        return self._sync_of(closing) == Sync.PERIODIC and self._judge.is_short(messages)

    def _sync_of(self, frame: bytes) -> int:
        """Return SYNC of a synchronizing message."""
        head = frame[:_HEAD]
        known = self._cached.get(head)
        if known is None:
            if len(self._cached) >= _HEADS_REMEMBERED:
                self._cached.clear()
            bits = sum((byte >> 2) << MDO_BITS * i for i, byte in enumerate(head))
            known = self._cached[head] = bits >> TCODE_BITS + self._src_bits & (1 << _SYNC_BITS) - 1
        return known
