"""A whole trace in frames, taken apart: the bytes of each trace source, and where in the frames each of them was."""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from rvtrace_gdb.decode.coresight.deformatter import Deformatter, FrameAccounting, breaks_sources
from rvtrace_gdb.decode.coresight.frames import (
    NULL_ID,
    USABLE_IDS,
    FrameForm,
    NoId,
    UnpackedFrames,
)
from rvtrace_gdb.decode.coresight.synchronization import Skipped
from rvtrace_gdb.support.errors import Progress, silent

_STRIDE = 1 << 14  # bytes of frames between two waypoints: they are taken apart again to find a place


class _Waypoint(NamedTuple):
    """The deformatter before byte *offset* of the frames, and how many bytes of each ID came before."""

    offset: int
    deformatter: Deformatter
    sizes: dict[int, int]


class _Located(NamedTuple):
    """The bytes of a source behind a waypoint: from *begins[i]* on they are at *runs[i]*, up to *end*."""

    waypoint: int
    atb_id: int
    begins: list[int]
    runs: list[tuple[UnpackedFrames, int]]
    end: int


class DemultiplexedTrace:
    """A trace in frames of *form*, which may become longer (`grow`)."""

    def __init__(self, form: FrameForm, frames: bytes = b"", progress: Progress = silent) -> None:
        self.form = form
        self.frames = b""
        """The bytes in which the frames are."""
        self._done = 0
        self._deformatter = Deformatter(form)
        self._streams: dict[int, bytearray] = {}
        self._breaks: dict[int, list[int]] = {}
        self._broken = False  # whether a source that sends for the first time may have sent before
        self._waypoints: list[_Waypoint] = []
        self._firsts: dict[int, int] = {}
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
            self._located = _Located(-1, -1, [], [], 0)
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
    def firsts(self) -> dict[int, int]:
        """Where what is of no source begins, by ID or `NoId`; without padding and synchronization packets."""
        end = self._deformatter.accounting.total
        return self._firsts | ({NoId.INCOMPLETE: end} if end < len(self.frames) else {})

    def offset_of(self, atb_id: int, index: int) -> int:
        """Return where in the frames byte *index* of a source is; behind its last one, the size of the frames."""
        if index >= len(self._streams.get(atb_id, b"")):
            return len(self.frames)
        number = bisect_right(self._waypoints, index, key=lambda it: it.sizes.get(atb_id, 0)) - 1
        if (self._located.waypoint, self._located.atb_id) != (number, atb_id):
            self._located = self._locate(number, atb_id)
        located = self._located
        at = bisect_right(located.begins, index) - 1
        unpacked, begin = located.runs[at]
        return unpacked.offset_of(begin + index - located.begins[at])

    def index_at(self, atb_id: int, offset: int) -> int:
        """Return the first byte of a source, by number, that is at byte *offset* of the frames or behind it."""
        number = max(bisect_right(self._waypoints, offset, key=lambda it: it.offset) - 1, 0)
        if number >= len(self._waypoints):
            return 0
        located = self._locate(number, atb_id)
        ends = [*located.begins, located.end][1:]
        for begin, end, run in zip(located.begins, ends, located.runs, strict=True):
            if _offset_in_run(run, end - begin - 1) >= offset:
                return begin + bisect_left(range(end - begin), offset, key=partial(_offset_in_run, run))
        return located.end

    def _locate(self, number: int, atb_id: int) -> "_Located":
        """Take the frames behind a waypoint apart again."""
        offset, deformatter, sizes = self._waypoints[number]
        end = self._waypoints[number + 1].offset if number + 1 < len(self._waypoints) else len(self.frames)
        begins: list[int] = []
        runs: list[tuple[UnpackedFrames, int]] = []
        index = sizes.get(atb_id, 0)
        for it in deformatter.duplicate().unpacked(self.frames[offset:end]):
            for run in () if isinstance(it, Skipped) else it.runs:
                if run.atb_id == atb_id and not isinstance(it, Skipped):
                    begins.append(index)
                    runs.append((it, run.begin))
                    index += run.end - run.begin
        return _Located(number, atb_id, begins, runs, index)

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
                self._firsts.setdefault(atb_id, unpacked.offset_of(begin))

    def _skip(self, skipped: Skipped) -> None:
        if skipped.cause is not NoId.SYNC:
            self._firsts.setdefault(skipped.cause, skipped.offset)
        if breaks_sources(skipped):
            self._broken = True
            for atb_id, stream in self._streams.items():
                breaks = self._breaks.setdefault(atb_id, [])
                if breaks[-1:] != [len(stream)]:
                    breaks.append(len(stream))


def _offset_in_run(run: tuple[UnpackedFrames, int], index: int) -> int:
    """Return where in the frames byte *index* of a run is."""
    unpacked, begin = run
    return unpacked.offset_of(begin + index)
