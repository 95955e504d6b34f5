"""Decodes CoreSight frames while they arrive: a decoder for each ATB ID."""

from collections.abc import Iterator

from rvtrace_gdb.decode.coresight.deformatter import Deformatter, breaks_sources
from rvtrace_gdb.decode.coresight.frames import NULL_ID, USABLE_IDS, NoId, UnpackedFrames
from rvtrace_gdb.decode.coresight.synchronization import Skipped
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.formats.framed_sinks import MISSING, remarks_of
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.stream import Arrived, StreamCounts, StreamFollower, StreamSource
from rvtrace_gdb.support.text import printable

_BEFORE = {NoId.UNKNOWN, NoId.BARRIER, NoId.UNSYNCHRONIZED, NoId.DAMAGED}  # a source may have sent something there
_PIECE = 1 << 14  # bytes of frames decoded before their rows are returned


class FramedFollower:
    """The `FollowedStream` of frames: each ATB ID in them has one of its own."""

    def __init__(
        self,
        source: StreamSource,
        frames: ImportedFrames,
        program: Program,
        *,
        wrapped: bool = False,
        stop_at_error: bool = False,
    ) -> None:
        self._source, self._frames, self._program = source, frames, program
        self._wrapped, self._stop_at_error = wrapped, stop_at_error
        self._deformatter = Deformatter(frames.form)
        self._followers: dict[int, StreamFollower] = {}
        self._firsts: dict[int, int] = {}
        self.counts = StreamCounts()
        """The counts so far, of all IDs together."""

    @property
    def started(self) -> list[int]:
        """The sources for which decoding could start."""
        return sorted({source for follower in self._followers.values() for source in follower.started})

    def feed(self, data: bytes) -> Iterator[Arrived]:
        """Yield what the next bytes contain, in order of the ATB IDs for each piece of them."""
        for at in range(0, len(data), _PIECE):
            part = data[at : at + _PIECE]
            streams: dict[int, bytearray] = {}
            for found in self._deformatter.unpacked(part):
                if not isinstance(found, Skipped):
                    self._sort(found, streams)
                    continue
                yield from self._decode_streams(streams)
                self._firsts.setdefault(found.cause, found.offset)
                if breaks_sources(found):
                    for follower in self._followers.values():
                        follower.cross_break(MISSING)
            yield from self._decode_streams(streams)
            self._add_up(self.counts.bytes + len(part))

    def _decode_streams(self, streams: dict[int, bytearray]) -> Iterator[Arrived]:
        for atb_id, stream in sorted(streams.items()):
            yield from self._follower(atb_id).feed(bytes(stream))
        streams.clear()

    def finish(self) -> Iterator[Arrived]:
        """Yield what the remaining bytes contain, as far as it is determined."""
        for skipped in self._deformatter.finish():
            self._firsts.setdefault(skipped.cause, skipped.offset)
        for _, follower in sorted(self._followers.items()):
            yield from follower.finish()
        self._add_up(self.counts.bytes)

    def remarks(self) -> list[str]:
        """Return lines for the user on what is in the frames besides trace."""
        accounting = self._deformatter.accounting
        lines = remarks_of(self._frames.form, accounting, self._firsts, "the stream", USABLE_IDS)
        return [printable(line) for line in lines]

    def _add_up(self, size: int) -> None:
        total = StreamCounts(size, sourceless=self._deformatter.accounting.lost)
        for counts in (follower.counts for follower in self._followers.values()):
            total.instructions += counts.instructions
            total.gaps += counts.gaps
            total.losses += counts.losses
            total.hart_events += counts.hart_events
            total.problem = total.problem or counts.problem
            for source, instructions in counts.strangers.items():
                total.strangers[source] = total.strangers.get(source, 0) + instructions
        self.counts = total

    def _sort(self, unpacked: UnpackedFrames, streams: dict[int, bytearray]) -> None:
        for atb_id, begin, end in unpacked.runs:
            if atb_id in USABLE_IDS:
                if self._frames.is_chosen(atb_id):
                    streams.setdefault(atb_id, bytearray()).extend(unpacked.data[begin:end])
            elif atb_id != NULL_ID:
                self._firsts.setdefault(atb_id, unpacked.offset_of(begin))

    def _follower(self, atb_id: int) -> StreamFollower:
        if atb_id not in self._followers:
            wrapped = self._wrapped or not _BEFORE.isdisjoint(self._firsts)
            self._followers[atb_id] = StreamFollower(
                self._source.of_atb_id(atb_id), self._program, wrapped=wrapped, stop_at_error=self._stop_at_error
            )
        return self._followers[atb_id]
