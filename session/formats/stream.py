"""Decodes a trace while its bytes arrive, in bounded memory: the output of a probe at a chip's pins.

`StreamFollower` decodes, `StreamFile` writes the bytes at once to a file beside the capture that they become in the
end, and `StreamReader` reads the stream in a thread while earlier bytes are decoded: a probe that is not read in time
loses bytes.
"""

import mmap
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from rvtrace_gdb.decode.history.builder import HistoryPiece, IncrementalBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.decoder import StreamDecoder
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.formats import registry, sinks
from rvtrace_gdb.session.formats.format import ArrivingDecoder, TraceOptions
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.files import opener_beside
from rvtrace_gdb.support.text import printable, warning
from rvtrace_gdb.transport.stream import Stream as Stream
from rvtrace_gdb.transport.stream import open_stream as open_stream

if TYPE_CHECKING:
    from rvtrace_gdb.decode.ntrace.options import Options

_PIECE = 1 << 14
"""Bytes decoded before their rows are returned: limits memory, and the delay of the first line."""


class StreamSource(NamedTuple):
    """The sources of a stream. *harts*: by source; None: any source, numbered alike. *alone*: there is only one.

    *frames*: the stream is CoreSight frames. *only*: all of it is of this hart. *finds_dialect*: the beginning of the
    stream shows which dialect of N-Trace it is of.
    """

    trace_options: TraceOptions
    harts: Mapping[int, int] | None
    alone: bool
    frames: ImportedFrames | None = None
    only: int | None = None
    finds_dialect: bool = False

    def hart_of(self, source: int) -> int | None:
        """Return the hart with a source, None if it is not known."""
        if self.only is not None:
            return self.only
        return source if self.harts is None else self.harts.get(source)

    def of_atb_id(self, atb_id: int) -> "StreamSource":
        """Return the sources with an ATB ID."""
        hart = self.only if self.frames is None else self.frames.harts.get(atb_id, self.only)
        if hart is None and not registry.format_of(self.trace_options).has_sources(self.trace_options):
            hart = atb_id
        return self._replace(frames=None, only=hart)


def source_of(capture: Capture, frames: ImportedFrames | None = None) -> StreamSource:
    """Return the encoders that feed the first sink of *capture*, and how to decode it. *frames*: how that is in frames.

    Raises Unsupported, NoTrace.
    """
    fed = sinks.feeding(capture.sinks[0], capture.encoders)
    trace_options = sinks.options_of(fed)
    has_sources = registry.format_of(trace_options).has_sources(trace_options)
    harts = dict(sinks.sources(fed, has_sources=has_sources))
    source = StreamSource(trace_options, harts, alone=not has_sources or len(fed) == 1)
    if frames is None or has_sources:
        return source._replace(frames=frames, alone=source.alone and frames is None)
    ids = capture.sinks[0].atb_ids
    known = frames.harts if len(fed) == 1 else {ids[it.in_force.name]: it.hart for it in fed}
    return source._replace(alone=len(fed) == 1, frames=replace(frames, harts=known), only=fed[0].hart)


@dataclass
class StreamCounts:
    """The counts so far. *losses*: gaps and bytes that could not be decoded, for which there is an event."""

    bytes: int = 0
    instructions: int = 0
    gaps: int = 0
    losses: int = 0
    hart_events: int = 0
    """What encoders said of harts besides the flow: PC samples, data written."""
    sourceless: int = 0
    """Bytes in frames of which nobody knows who sent them."""
    problem: str | None = None
    """The first contradiction of trace and program."""
    strangers: dict[int, int] = field(default_factory=dict)
    """Instructions of unknown sources, by source."""


class Arrived(NamedTuple):
    """What a hart did next."""

    hart: int
    piece: HistoryPiece


class FollowedStream(Protocol):
    """Decodes a stream. No bytes make it raise. *started*: the sources for which decoding could start."""

    counts: StreamCounts

    @property
    def started(self) -> list[int]: ...
    def feed(self, data: bytes) -> Iterator[Arrived]: ...
    def finish(self) -> Iterator[Arrived]: ...

    def remarks(self) -> list[str]:
        """Return lines for the user on what arrived besides trace, at the end."""
        ...


class StreamFollower:
    """A decoder to `feed` what arrives, and to `finish`. *program*: what runs. *wrapped*: the stream starts inside a
    message.

    No bytes make it raise.
    """

    def __init__(
        self, source: StreamSource, program: Program, *, wrapped: bool = False, stop_at_error: bool = False
    ) -> None:
        self.counts = StreamCounts()
        self._source = source
        self._builders: dict[int, IncrementalBuilder] = {}
        self._program, self._wrapped, self._stop_at_error = program, wrapped, stop_at_error
        self._held = b""  # what arrived before the dialect was clear
        self._decoder = None if source.finds_dialect else self._decoder_of(source.trace_options)

    def _decoder_of(self, trace_options: TraceOptions) -> ArrivingDecoder:
        return registry.format_of(trace_options).arriving_decoder(
            self._program, trace_options, self._builder, wrapped=self._wrapped, stop_at_error=self._stop_at_error
        )

    @property
    def started(self) -> list[int]:
        """The sources for which decoding could start."""
        return sorted(source for source, builder in self._builders.items() if builder.started)

    def feed(self, data: bytes) -> Iterator[Arrived]:
        """Yield what the next bytes contain, in order of the harts for each piece of them."""
        for at in range(0, len(data), _PIECE):
            part = data[at : at + _PIECE]
            self._clear_decoder(part, last=False)
            self.counts.bytes += len(part)
            yield from self._new_rows(last=False)

    def finish(self) -> Iterator[Arrived]:
        """Yield what the remaining bytes contain, as far as it is determined."""
        decoder = self._clear_decoder(b"", last=True)
        assert decoder is not None
        decoder.finish()
        yield from self._new_rows(last=True)

    def cross_break(self, why: str) -> None:
        """Note that trace is missing before what arrives next. *why*: for the user."""
        decoder = self._clear_decoder(b"", last=True)
        if isinstance(decoder, StreamDecoder):
            decoder.cross_break(why)

    def remarks(self) -> list[str]:
        """Return nothing: all of it is trace."""
        return []

    def _clear_decoder(self, data: bytes, *, last: bool) -> ArrivingDecoder | None:
        """Return the decoder, None as long as the dialect of the stream is not clear. *last*: it has to be now."""
        if self._decoder is not None:
            self._decoder.feed(data)
            return self._decoder
        from rvtrace_gdb.session.formats.guesses.found_dialect import (  # few streams have events
            SETTLED,
            with_found_dialect,
        )

        self._held += data
        if last or len(self._held) >= SETTLED:
            options = cast("Options", self._source.trace_options)
            self._decoder = self._decoder_of(with_found_dialect(options, self._held, wrapped=self._wrapped))
            self._decoder.feed(self._held)
            self._held = b""
        return self._decoder

    def _builder(self, source: int) -> IncrementalBuilder:
        return self._builders.setdefault(source, IncrementalBuilder())

    def _new_rows(self, *, last: bool) -> Iterator[Arrived]:
        """Yield new rows. Sources for which decoding never started are ignored: noise contains any source."""
        for source, builder in sorted(self._builders.items()):
            hart = self._source.hart_of(source)
            for event in builder.fresh():
                if hart is not None:
                    self.counts.losses += event.is_loss
                    self.counts.hart_events += event.kind is EventKind.HART_EVENT
                if hart is not None and event.kind is EventKind.MISMATCH and self.counts.problem is None:
                    self.counts.problem = event.text
            piece = builder.take(last=last)
            if hart is None:
                self._stranger(source, piece.instructions)
            elif builder.started and (piece.end > piece.begin or piece.fresh or piece.events):
                self.counts.instructions += piece.instructions
                self.counts.gaps += piece.gaps
                yield Arrived(hart, piece)

    def _stranger(self, source: int, instructions: int) -> None:
        if instructions:
            self.counts.strangers[source] = self.counts.strangers.get(source, 0) + instructions


def problem(counts: StreamCounts) -> str | None:
    """Return a line if trace and program contradict each other."""
    return None if counts.problem is None else warning(f"{printable(counts.problem)}: is this the program that ran?")


def strangers(counts: StreamCounts) -> str | None:
    """Return a line if there are other sources than the known encoders."""
    if not counts.strangers:
        return None
    who = ", ".join(map(str, sorted(counts.strangers)))
    return warning(f"SRC {who} is also in the stream, but no known encoder has it")


class StreamFile:
    """The file to which bytes go until `save`; *path*: that of the capture. Raises CaptureError.

    Its name is the capture's with ".part" appended: the bytes are there if the process is killed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if not path or path == "-" or "\0" in path:
            raise CaptureError(path, "give the name of a file for the capture")
        if os.path.isdir(path):
            raise CaptureError(path, "cannot be written: is a folder")
        self.file = self._new_file(path)

    def _new_file(self, path: str) -> BinaryIO:
        if os.path.exists(path) and not os.path.isfile(path):  # it is a device
            return cast(BinaryIO, tempfile.TemporaryFile(buffering=0))
        try:
            return cast(BinaryIO, open(f"{path}.part", "x+b", buffering=0, opener=opener_beside(path)))
        except FileExistsError:
            why = "exists, with the bytes of a run that was killed: import them with `rvtrace import`, then remove it"
            raise CaptureError(f"{path}.part", why) from None
        except OSError as error:
            raise CaptureError(path, f"cannot be written: {error.strerror}") from None

    def save(self, size: int, capture_of: Callable[[bytes], Capture], progress: Progress = silent) -> None:
        """Write the capture of the first *size* bytes, at least one, which *capture_of* creates.

        Raises CaptureError, which says where the bytes still are.
        """
        try:
            with mmap.mmap(self.file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
                capture_file.save(capture_of(cast(bytes, mapped)), self.path, progress)
        except CaptureError as error:
            still = f"; the {size} bytes are in {self.file.name}" if self._has_name else ""
            raise CaptureError(error.file, error.problem + still) from None
        self.remove()

    @property
    def _has_name(self) -> bool:
        """Return whether the file of the bytes has a name."""
        return isinstance(self.file.name, str)

    def remove(self) -> None:
        """Remove the file: the bytes are saved elsewhere, or there are none."""
        if self._has_name and os.path.exists(self.file.name):
            os.unlink(self.file.name)

    def close(self) -> None:
        """Close the file, and leave the bytes in it."""
        self.file.close()


_READ_PIECE = 1 << 16  # bytes returned at once
WAITING = 1 << 26
"""Bytes in memory that may wait."""

_TURN = 0.1  # seconds
_DRAINING = 1.0


class NotKept(RvtraceError):
    """What arrives cannot be written any more. *file*: where the first *kept* bytes are."""

    def __init__(self, file: str, error: OSError, kept: int) -> None:
        what = f"only the first {kept} bytes are kept" if kept else "nothing is kept"
        super().__init__(f"{file}: cannot be written: {error.strerror}: {what}; decoding continues")
        self.file, self.kept = file, kept


class Spool:
    """A queue of bytes from the reader to the decoder.

    With a *file* all of them are written to it, and wait on disk; without one, or when it takes no more, a limited
    number waits in memory, and then the reader waits.
    """

    def __init__(self, file: BinaryIO | None = None, *, limit: int = WAITING) -> None:
        self._file, self._limit = file, limit
        self._pieces: deque[bytes] = deque()
        self._written = self._taken = 0
        self._ended = False
        self._changed = threading.Condition()
        self.kept = 0
        """The number of bytes in the file."""
        self.failure: NotKept | None = None
        """Why the other bytes are not in the file."""
        self.held_up = False
        """Whether the reader had to wait, and with it the sender."""

    @property
    def waiting(self) -> int:
        """The number of bytes that were not taken yet."""
        return self._written - self._taken

    @property
    def _in_memory(self) -> int:
        return self._written - max(self._taken, self.kept)

    @property
    def written(self) -> int:
        """The number of bytes so far."""
        return self._written

    def put(self, data: bytes) -> None:
        """Add bytes."""
        with self._changed:
            if self._file is not None and self.failure is None:
                data = self._keep(data, self._file)
            if data:
                while self._in_memory >= self._limit and not self._ended:
                    self.held_up = True
                    self._changed.wait(_TURN)
                self._pieces.append(data)
                self._written += len(data)
            self._changed.notify_all()

    def _keep(self, data: bytes, file: BinaryIO) -> bytes:
        """Write bytes to the file; return those that it does not take."""
        view = memoryview(data)
        while view:
            try:
                count = os.pwrite(file.fileno(), view, self._written)
            except OSError as error:
                self.failure = NotKept(str(file.name), error, self.kept)
                break
            self._written += count
            self.kept += count
            view = view[count:]
        return bytes(view)

    def get(self, wait: float) -> bytes | None:
        """Return the next bytes; b"" if none came within *wait* seconds, None at the end."""
        with self._changed:
            if not self.waiting and not self._ended:
                self._changed.wait(wait)
            if not self.waiting:
                return None if self._ended else b""
            data = self._next()
            self._taken += len(data)
            self._changed.notify_all()
        return data

    def _next(self) -> bytes:
        if self._file is not None and self._taken < self.kept:
            return os.pread(self._file.fileno(), min(_READ_PIECE, self.kept - self._taken), self._taken)
        size, pieces = 0, []
        while self._pieces and size < _READ_PIECE:
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1])
        return b"".join(pieces)

    def end(self) -> None:
        """Mark the end of the bytes."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class StreamReader:
    """Reads *stream* into *spool*, in a thread, from `start` to its end or `stop`."""

    def __init__(self, stream: Stream, spool: Spool) -> None:
        self.failure: RvtraceError | None = None
        """Why it ended, if the stream did not end."""
        self._stream, self._spool = stream, spool
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read_stream, name="stream", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Read only what has arrived. The spool ends soon."""
        self._stopping.set()

    def join(self) -> None:
        """Wait for the end, after `stop`."""
        self._stopping.set()
        self._spool.end()
        if self._thread.ident is not None:
            self._thread.join()

    def _read_stream(self) -> None:
        try:
            while not self._stopping.is_set():
                data = self._stream.read(_TURN)
                if data is None:
                    break
                if data:
                    self._spool.put(data)
            else:
                self._read_what_is_there()
        except RvtraceError as error:
            self.failure = error
        finally:
            self._spool.end()

    def _read_what_is_there(self) -> None:
        """Read what has arrived: once in any case, but not for ever if the sender is faster."""
        end = time.monotonic() + _DRAINING
        while data := self._stream.read(0):
            self._spool.put(data)
            if time.monotonic() >= end:
                break
