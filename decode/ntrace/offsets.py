"""Where in the trace the frames of a batch are: needed for reports only, which are rare."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Protocol


class Offsets(Protocol):
    """The byte offsets of frames in the trace."""

    def offset_of(self, index: int) -> int:
        """Return the byte offset of frame *index*; cheap if called with rising numbers."""
        ...


class ConsecutiveOffsets:
    """The byte offsets of consecutive frames. They are needed only for reports, mostly in ascending order."""

    def __init__(self, frames: Sequence[bytes], offset: int) -> None:
        self._frames = frames
        self._index = 0
        self._offset = offset

    def offset_of(self, index: int) -> int:
        """Return the offset of frame *index*."""
        if index < self._index:
            self._offset -= sum(map(len, self._frames[index : self._index]))
        else:
            self._offset += sum(map(len, self._frames[self._index : index]))
        self._index = index
        return self._offset


class ShiftedOffsets:
    """The byte offsets of frames whose first *skipped* are left out."""

    def __init__(self, offsets: Offsets, skipped: int) -> None:
        self._offsets = offsets
        self._skipped = skipped

    def offset_of(self, index: int) -> int:
        """Return the byte offset of frame *index*."""
        return self._offsets.offset_of(index + self._skipped)


class ScatteredOffsets:
    """The byte offsets of the frames of one hart among those of all harts."""

    def __init__(self, offsets: Sequence[int], own: Sequence[int]) -> None:
        self._offsets = offsets
        self._own = own

    def offset_of(self, index: int) -> int:
        """Return the offset of the hart's frame *index*."""
        return self._offsets[self._own[index]]


class FrameOffsets:
    """The byte offsets of frames of which those of the bytes are known: *offset_of_byte*."""

    def __init__(self, frames: Sequence[bytes], offset_of_byte: Callable[[int], int]) -> None:
        self._frames = frames
        self._offset_of_byte = offset_of_byte

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self._frames), initial=0))

    def offset_of(self, index: int) -> int:
        """Return the offset of frame *index*."""
        return self._offset_of_byte(self._starts[index])


class ByteOffsets:
    """The trace offsets of the first bytes of frames, when these are put together."""

    def __init__(self, frames: Sequence[bytes], offsets: Offsets) -> None:
        self._frames = frames
        self._offsets = offsets

    @cached_property
    def _indices(self) -> dict[int, int]:
        return {start: i for i, start in enumerate(accumulate(map(len, self._frames), initial=0))}

    def __call__(self, byte: int) -> int:
        """Return the offset of the frame that starts at this byte."""
        return self._offsets.offset_of(self._indices[byte])


class FrameStarts(NamedTuple):
    """The offsets of frames that are named by where they start: *offset_of_byte* says where each byte comes from."""

    offset_of_byte: Callable[[int], int]

    def offset_of(self, index: int) -> int:
        """Return the offset of the frame that starts at byte *index*."""
        return self.offset_of_byte(index)


class SourceOffsets:
    """The trace offsets of the bytes of one source. *runs*: pairs (from this byte on, from that one of the batch)."""

    def __init__(self, batch_offset: int, runs: Sequence[int]) -> None:
        self._batch_offset = batch_offset
        self._own, self._from = runs[::2], runs[1::2]

    def __call__(self, byte: int) -> int:
        """Return the offset of a byte."""
        i = bisect_right(self._own, byte) - 1
        return self._batch_offset + self._from[i] + byte - self._own[i]


class SingleOffset(NamedTuple):
    """The offset of a single frame."""

    offset: int

    def offset_of(self, index: int) -> int:
        """Return the offset, whatever frame is asked for."""
        return self.offset
