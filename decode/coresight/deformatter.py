"""The deformatter: from frames to the bytes of each trace source, whatever the pieces in which the frames arrive."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from rvtrace_gdb.decode.coresight.frames import (
    FLUSH_ID,
    FRAME_BYTES,
    NULL_ID,
    TRIGGER_ID,
    USABLE_IDS,
    FrameForm,
    NoId,
    UnpackedFrames,
    WholeFrames,
    unpack,
)
from rvtrace_gdb.decode.coresight.synchronization import Skipped, frame_cutter

_SLICE = 1 << 16  # bytes taken apart at once
_FORGETTING = {NoId.BARRIER, NoId.UNSYNCHRONIZED, NoId.DAMAGED}
"""Behind these the ID is unknown, and the bytes of every source do not continue those before."""


class SourceBytes(NamedTuple):
    """Consecutive bytes of a source. *atb_id*: of the source, or an ID that none has, or `NoId.UNKNOWN`.

    *offset*: where in the trace the first byte is.
    """

    atb_id: int
    offset: int
    data: bytes


@dataclass
class FrameAccounting:
    """What the bytes of a trace in frames are: *total* is the sum of all others.

    *layout*: IDs, and the bytes of auxiliary bits. *of_ids*: data, by ID. *others*: what has no ID.
    """

    total: int = 0
    layout: int = 0
    of_ids: dict[int, int] = field(default_factory=dict)
    others: dict[NoId, int] = field(default_factory=dict)

    def add(self, atb_id: int, size: int) -> None:
        """Count data of an ID, or what has none."""
        if atb_id < 0:
            self.others[NoId(atb_id)] = self.others.get(NoId(atb_id), 0) + size
        else:
            self.of_ids[atb_id] = self.of_ids.get(atb_id, 0) + size

    @property
    def sources(self) -> dict[int, int]:
        """The bytes of each trace source, by ID."""
        return {atb_id: size for atb_id, size in sorted(self.of_ids.items()) if atb_id in USABLE_IDS}

    @property
    def idle(self) -> int:
        """The bytes that are no trace, and are not missing: layout, padding, synchronization, triggers."""
        told = sum(self.of_ids.get(atb_id, 0) for atb_id in (NULL_ID, FLUSH_ID, TRIGGER_ID))
        return self.layout + told + self.others.get(NoId.SYNC, 0) + self.others.get(NoId.BARRIER, 0)

    @property
    def lost(self) -> int:
        """The bytes of which nobody knows the source: those before the first ID, those of IDs that no source may have,
        and damage.
        """
        return self.total - self.idle - sum(self.sources.values())


class Deformatter:
    """Takes frames apart that arrive in pieces of any size. The bytes of an ID are in order; synchronization packets
    come before the frames between them.
    """

    def __init__(self, form: FrameForm) -> None:
        self.form = form
        self.accounting = FrameAccounting()
        """What has been taken apart. At the end its total is the size of the trace."""
        self._cutter = frame_cutter(form)
        self._current: int = NoId.UNKNOWN

    def feed(self, data: bytes) -> Iterator[SourceBytes | Skipped]:
        """Return what is complete with *data*."""
        for found in self.unpacked(data):
            if isinstance(found, Skipped):
                yield found
            else:
                yield from _bytes_of_sources(found)

    def finish(self) -> Iterator[Skipped]:
        """Return what is left at the end."""
        for found in self._cutter.finish():
            counted = self._counted(found) if isinstance(found, Skipped) else self._unpack(found)
            assert isinstance(counted, Skipped)  # frames have ended before
            yield counted

    def unpacked(self, data: bytes) -> Iterator[UnpackedFrames | Skipped]:
        """Return the frames that are complete with *data*, taken apart."""
        for begin in range(0, len(data), _SLICE):
            for found in self._cutter.feed(data[begin : begin + _SLICE]):
                yield self._counted(found) if isinstance(found, Skipped) else self._unpack(found)

    def duplicate(self) -> Self:
        """Return a deformatter that goes on from here by itself."""
        return deepcopy(self)

    def _unpack(self, frames: WholeFrames) -> UnpackedFrames:
        unpacked = unpack(frames, self._current)
        self._current = unpacked.last
        accounting = self.accounting
        accounting.total += len(frames.data)
        accounting.layout += len(frames.data) // FRAME_BYTES + unpacked.ids
        for atb_id, begin, end in unpacked.runs:
            accounting.add(atb_id, end - begin)
        return unpacked

    def _counted(self, skipped: Skipped) -> Skipped:
        self.accounting.total += skipped.size
        self.accounting.add(skipped.cause, skipped.size)
        if skipped.cause in _FORGETTING:
            self._current = NoId.UNKNOWN
        return skipped


def _bytes_of_sources(unpacked: UnpackedFrames) -> Iterator[SourceBytes]:
    data, offset_of = unpacked.data, unpacked.offset_of
    for atb_id, begin, end in unpacked.runs:
        yield SourceBytes(atb_id, offset_of(begin), data[begin:end])


def breaks_sources(skipped: Skipped) -> bool:
    """Whether bytes of every source may be missing at what was skipped."""
    return skipped.cause in _FORGETTING
