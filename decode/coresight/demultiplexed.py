"""A whole trace in frames, taken apart: the bytes of each trace source, and where in the frames each of them was."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.coresight.deformatter import Deformatter, FrameAccounting, breaks_sources
from rvtrace_gdb.decode.coresight.frames import (
    DATA_BYTES,
    NULL_ID,
    TRIGGER_ID,
    USABLE_IDS,
    FrameForm,
    IdRun,
    NoId,
    UnpackedFrames,
)
from rvtrace_gdb.decode.coresight.synchronization import Skipped
from rvtrace_gdb.support.errors import Progress, silent

_STRIDE = 1 << 14  # bytes of frames between two waypoints: they are taken apart again to find a place
_BETWEEN = 4  # bytes of the layout, or of synchronization, between what is said of together
_PLACES = 256  # that are kept of what is not of a source: a damaged trace may have endless ones


class OtherBytes(NamedTuple):
    """Bytes in frames that are not of a source. *atb_id*: an ID that no source may have, or why there is none. *size*:
    how many, from *offset* of the frames on; in between may be bytes of the layout.
    """

    atb_id: int
    offset: int
    size: int


class _Waypoint(NamedTuple):
    """The deformatter before byte *offset* of the frames, and how many bytes of each ID came before."""

    offset: int
    deformatter: Deformatter
    sizes: dict[int, int]


class DemultiplexedTrace:
    """A trace in frames of *form*, which may become longer (`grow`)."""

    def __init__(self, form: FrameForm, frames: bytes = b"", progress: Progress = silent) -> None:
        self.frames = b""
        """The bytes in which the frames are."""
        self._done = 0
        self._deformatter = Deformatter(form)
        self._streams: dict[int, bytearray] = {}
        self._breaks: dict[int, list[int]] = {}
        self._broken = False  # whether a source that sends for the first time may have sent before
        self._waypoints: list[_Waypoint] = []
        self._others: list[OtherBytes] = []
        self._found: tuple[int, list[UnpackedFrames]] = (
            -1,
            [],
        )  # what a note leads to: of the last one that was asked for
        self.grow(frames, progress)

    def grow(self, frames: bytes, progress: Progress = silent) -> None:
        """Take apart *frames*, which begin with those so far. Raises what *progress* raises, and goes on then when it
        is called again.
        """
        self.frames = frames
        while self._done < len(frames):
            progress("taking frames apart", self._done, len(frames))
            sizes = {atb_id: len(stream) for atb_id, stream in self._streams.items()}
            self._waypoints.append(_Waypoint(self._done, self._deformatter.duplicate(), sizes))
            piece = frames[self._done : self._done + _STRIDE]
            for found in self._deformatter.unpacked(piece):
                if isinstance(found, Skipped):
                    self._skip(found)
                else:
                    self._sort(found)
            self._done += len(piece)

    @property
    def atb_ids(self) -> list[int]:
        """The IDs of the sources that sent something."""
        return sorted(self._streams)

    def stream(self, atb_id: int) -> bytes:
        """Return the bytes of a source."""
        return bytes(self._streams.get(atb_id, b""))

    def breaks(self, atb_id: int) -> list[int]:
        """Return the bytes of a source, by number, that may not continue the byte before: trace is missing there."""
        return self._breaks.get(atb_id, [])

    @property
    def accounting(self) -> FrameAccounting:
        """What all bytes are."""
        known = self._deformatter.accounting
        rest = len(self.frames) - known.total
        others = {**known.others, NoId.INCOMPLETE: rest} if rest else known.others
        return replace(known, total=len(self.frames), of_ids=dict(known.of_ids), others=dict(others))

    @property
    def others(self) -> list[OtherBytes]:
        """The first bytes that are of no source; without padding and synchronization packets."""
        end = self._deformatter.accounting.total
        incomplete = [OtherBytes(NoId.INCOMPLETE, end, len(self.frames) - end)] if end < len(self.frames) else []
        return self._others + incomplete

    def offset_of(self, atb_id: int, index: int) -> int:
        """Return where in the frames byte *index* of a source is. Behind the last one: the size of the frames."""
        if index >= len(self._streams.get(atb_id, b"")):
            return len(self.frames)
        number = bisect_right(self._waypoints, index, key=lambda it: it.sizes.get(atb_id, 0)) - 1
        before = self._waypoints[number].sizes.get(atb_id, 0)
        for unpacked, run in self._runs(number):
            if run.atb_id == atb_id:
                if index < before + run.end - run.begin:
                    return unpacked.offset_of(run.begin + index - before)
                before += run.end - run.begin
        raise AssertionError  # the waypoint leads to it

    def _runs(self, number: int) -> Iterator[tuple[UnpackedFrames, IdRun]]:
        if self._found[0] != number:
            offset, deformatter, _ = self._waypoints[number]
            end = self._waypoints[number + 1].offset if number + 1 < len(self._waypoints) else len(self.frames)
            found = deformatter.duplicate().unpacked(self.frames[offset:end])
            self._found = number, [it for it in found if not isinstance(it, Skipped)]
        for unpacked in self._found[1]:
            for run in unpacked.runs:
                yield unpacked, run

    def _sort(self, unpacked: UnpackedFrames) -> None:
        data, streams = unpacked.data, self._streams
        for atb_id, begin, end in unpacked.runs:
            if atb_id in streams:
                streams[atb_id] += data[begin:end]
            elif atb_id in USABLE_IDS:
                streams[atb_id] = bytearray(data[begin:end])
                if self._broken:
                    self._breaks[atb_id] = [0]
            elif atb_id != NULL_ID:
                self._broken |= atb_id == NoId.UNKNOWN
                self._note_other(atb_id, unpacked.offset_of(begin), end - begin)

    def _skip(self, skipped: Skipped) -> None:
        if skipped.cause is not NoId.SYNC:
            self._note_other(skipped.cause, skipped.offset, skipped.size)
        if breaks_sources(skipped):
            self._broken = True
            for atb_id, stream in self._streams.items():
                breaks = self._breaks.setdefault(atb_id, [])
                if breaks[-1:] != [len(stream)]:
                    breaks.append(len(stream))

    def _note_other(self, atb_id: int, offset: int, size: int) -> None:
        last = self._others[-1] if self._others else None
        if last is not None and last.atb_id == atb_id and _continues(last, offset):
            self._others[-1] = last._replace(size=last.size + size)
        elif len(self._others) < _PLACES:
            self._others.append(OtherBytes(atb_id, offset, size))


def _continues(before: OtherBytes, offset: int) -> bool:
    """Whether nothing but the layout is between bytes and those at *offset*. Each trigger is one of its own."""
    if before.atb_id in (TRIGGER_ID, NoId.BARRIER):
        return False
    return offset - before.offset <= before.size + before.size // DATA_BYTES + _BETWEEN
