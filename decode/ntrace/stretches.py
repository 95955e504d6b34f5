"""Messages that are missing where nothing else tells: fewer than there have to be from one synchronization to the next.

Source: RISC-V Trace Control Interface 1.0, trTeInstSyncMode and trTeInstSyncMax: "Generate synchronization when count
reaches 2^(trTeInstSyncMax+4)", and the count begins anew with each synchronizing message. So a periodic one has so many
messages before it, or more where it waited for a branch. Whether an encoder counts the synchronizing message itself is
not said: one fewer is believed until the trace has shown that this encoder does not (`decode.stretches`).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.ntrace.layout import LAYOUTS, MAX_SRC_BITS, MDO_BITS, TCODE_BITS, Sync, Tcode
from rvtrace_gdb.decode.streams import Offsets
from rvtrace_gdb.decode.stretches import Judge

_SYNC_BITS = 4
_HEAD = -(-(TCODE_BITS + MAX_SRC_BITS + _SYNC_BITS) // MDO_BITS)  # bytes that hold TCODE, SRC and SYNC
_SYNC_BYTES = bytes(tcode << 2 for tcode, layout in LAYOUTS.items() if layout.synchronizes)
_OWNERSHIP = Tcode.OWNERSHIP << 2
_SYNCS = re.compile(b"[" + re.escape(_SYNC_BYTES) + b"]")
_ENDS = re.escape(bytes(range(0b11, 256, 4)))
_LATER_SYNC = re.compile(b"[" + re.escape(_SYNC_BYTES) + b"](?<=[" + _ENDS + b"].)", re.DOTALL)
_IDLE = bytes(byte & 0b11 == 0b11 for byte in range(256))
_TELLING = re.compile(b"[" + re.escape(bytes(byte for byte in range(0, 256, 4) if byte != _OWNERSHIP)) + b"]")
_FIRST = itemgetter(0)
_HEADS_REMEMBERED = 1 << 12


class Short(NamedTuple):
    """A stretch with too few *messages*, from the synchronizing one at byte *start* to that at *end*.

    *at*: the frame, of those looked at, before which that is to be told.
    """

    start: int
    end: int
    messages: int
    at: int


class Stretches:
    """Counts one hart's messages, whose encoder synchronizes after *period* of them."""

    def __init__(self, period: int, src_bits: int) -> None:
        self._judge = Judge(period)
        self._src_bits = src_bits
        self._count: int | None = None  # since the last synchronizing message, None before the first one
        self._telling = 0  # of these, those that are no Ownership
        self._opened: tuple[Offsets, int] | None = None  # where that message is; asked for only when it is needed
        self._pending: Short | None = None  # if no other synchronization follows at once
        self._known: dict[bytes, int] = {}

    def look(self, frames: Sequence[bytes], offsets: Offsets) -> Iterator[Short]:
        """The stretches that lack messages, as far as that is known with *frames*."""
        if not frames or self._are_whole(frames, offsets):
            return
        heads = bytes(map(_FIRST, frames))
        idle = heads.translate(_IDLE)
        first = -1  # the last synchronizing message in *frames*
        yield from self._settled(heads, 0)
        for found in _SYNCS.finditer(heads):
            at = found.start()
            self._add(heads, idle, first + 1, at)
            if self._count is not None and self._telling and self._is_short(self._count, frames[at]):
                where, index = (offsets, first) if first >= 0 or self._opened is None else self._opened
                start = where.of(index)
                self._pending = Short(start, offsets.of(at), self._count, at)
                yield from self._settled(heads, at + 1)
            self._count = self._telling = 0
            first = at
        self._add(heads, idle, first + 1, len(frames))
        if first >= 0:
            self._opened = offsets, first

    def _are_whole(self, frames: Sequence[bytes], offsets: Offsets) -> bool:
        """Counts all messages at once if there is nothing to look at closely: no filling, and no stretch too short."""
        raw = b"".join(frames)
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
        self._judge.add(len(periodic), periodic.count(self._judge.least))
        if syncs:
            self._count = self._telling = 0
            self._opened = offsets, len(frames) - others[-1]
        rest = frames[len(frames) - others[-1] + 1 :] if syncs else frames
        heads = bytes(map(_FIRST, rest))
        self._add(heads, bytes(len(heads)), 0, len(heads))
        return True

    def finish(self) -> Iterator[Short]:
        """The end of the trace."""
        if self._pending is not None:
            yield self._pending

    def _add(self, heads: bytes, idle: bytes, start: int, stop: int) -> None:
        """Counts the messages from one frame to another."""
        if self._count is not None:
            messages = stop - start - idle.count(1, start, stop)
            self._count += messages
            self._telling += messages - heads.count(_OWNERSHIP, start, stop)

    def _settled(self, heads: bytes, start: int) -> Iterator[Short]:
        """What is pending, if the next message does not synchronize. (Two in a row are no periodic ones: a trap right
        after a trap return has them, "Corner Cases".)
        """
        following = _TELLING.search(heads, start) if self._pending is not None else None
        if following is not None and self._pending is not None:
            pending, self._pending = self._pending, None
            if following[0] not in _SYNC_BYTES:
                yield pending._replace(at=following.start())

    def _is_short(self, messages: int, closing: bytes) -> bool:
        """Whether some are missing, as far as this encoder has shown that it keeps to its period."""
        return self._sync_of(closing) == Sync.PERIODIC and self._judge.is_short(messages)

    def _sync_of(self, frame: bytes) -> int:
        """SYNC of a synchronizing message."""
        head = frame[:_HEAD]
        known = self._known.get(head)
        if known is None:
            if len(self._known) >= _HEADS_REMEMBERED:
                self._known.clear()
            bits = sum((byte >> 2) << MDO_BITS * i for i, byte in enumerate(head))
            known = self._known[head] = bits >> TCODE_BITS + self._src_bits & (1 << _SYNC_BITS) - 1
        return known
