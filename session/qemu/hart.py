"""One hart of QEMU: how far its ring was read, and the trace that was made of it."""

from array import array
from collections import deque

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session.captured import CapturedEncoder, CapturedSink
from rvtrace_gdb.session.qemu import in_force
from rvtrace_gdb.session.qemu.code import Code
from rvtrace_gdb.session.qemu.encoding import encoder_for
from rvtrace_gdb.session.qemu.records import Records
from rvtrace_gdb.session.qemu.wanted import Wanted
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.qemu.ring import BLOCK, TAG, Ring

BATCH = 1 << 16  # words
KEPT = 1 << 26
"""Bytes of trace that are kept of a hart: the oldest are dropped, as in a buffer that went round."""


class HartTrace:
    """What *ring* has of *hart* from now on. *kept*: see KEPT; a tail is always there, so a little more may be."""

    def __init__(self, ring: Ring, hart: int, code: Code, wanted: Wanted, image: Image, *, kept: int = KEPT) -> None:
        self.hart = hart
        self._ring, self._code, self._wanted, self._kept = ring, code, wanted, kept
        self._at = ring.written(hart)
        self._contexts = bool(getattr(wanted.options, "context", False)) is True
        self._records = Records(code, contexts=self._contexts)
        self._encoder = encoder_for(wanted)
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._wrapped = False  # the first piece that is kept may begin anywhere
        self.overwritten = False
        """Older trace is lost."""
        self.encoder: CapturedEncoder = in_force.encoder(hart, wanted, image)
        self.sink: CapturedSink = in_force.sink(hart, b"", wrapped=False)
        self.instructions = 0
        """Retired, of what was read, since the trace began."""

    @property
    def behind(self) -> int:
        """How many words are in the ring that were not read yet."""
        return self._ring.written(self.hart) - self._at

    def read(self, progress: Progress = silent) -> None:
        """Takes all that is in the ring by now. Raises QemuError, and what *progress* raises."""
        end = self._ring.written(self.hart)
        begin = max(self._at, end - self._ring.size)
        while self._at < end:
            progress(f"hart {self.hart}: encoding (blocks)", self._at - begin, end - begin)
            self._take(min(end, self._at + BATCH))

    def close_up(self, *, stopped: bool) -> None:
        """Makes the sink of all that was read. *stopped*: the program is, and the recorder has said how far it came."""
        rest = self._records.open_end(self._ring.began(self.hart)) if stopped else []
        before = self._encoder.instructions
        tail = self._encoder.end(rest)
        self.instructions = before + sum(getattr(item, "instructions", 0) for item in rest)
        self.sink = in_force.sink(self.hart, b"".join(self._pieces) + tail, wrapped=self._wrapped)

    def _take(self, end: int) -> None:
        words = self._ring.words(self.hart, self._at, end)
        oldest = self._ring.oldest(self.hart)  # by now
        if oldest > self._at:
            words = words[min(oldest - self._at, len(words)) :]
            self._lose()
            words = _from_a_block(words)
        self._at = max(end, oldest)
        data = self._encoder.feed(self._records.feed(words))
        self._pieces.append(data)
        self._size += len(data)
        while self._size > self._kept and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft())
            self._wrapped = self.overwritten = True

    def _lose(self) -> None:
        """Words were overwritten before they were read: what was there before is no part of what follows."""
        self._records = Records(self._code, contexts=self._contexts)
        instructions = self._encoder.instructions
        self._encoder = encoder_for(self._wanted)
        self._encoder.instructions = instructions
        self._pieces.clear()
        self._size, self._wrapped, self.overwritten = 0, False, True


def _from_a_block(words: "array[int]") -> "array[int]":
    """What is before the first block belongs to one that is not there any more."""
    first = next((at for at, word in enumerate(words) if word & TAG == BLOCK), len(words))
    return words[first:]
