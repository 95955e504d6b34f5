"""`rvtrace decode --follow`: decode what a trace probe delivers as it arrives.

The command line says how the bytes that arrive were encoded, and which sources send them.
"""

import argparse
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from types import FrameType
from typing import NamedTuple, Protocol

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands.decode.follow_output import FollowedRows, FollowStatus, size, summary
from rvtrace_gdb.console.commands.decode.request import DecodeRequest, FollowError, StreamOptions
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import RawTrace, RequestedTrace, SettingsBytes, TandemBytes
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.errors import WrongXlen
from rvtrace_gdb.session.formats import stream
from rvtrace_gdb.session.formats.imports import raw_import
from rvtrace_gdb.session.formats.stream import (
    WAITING,
    FollowedStream,
    NotKept,
    Spool,
    Stream,
    StreamFile,
    StreamFollower,
    StreamReader,
    open_stream,
)
from rvtrace_gdb.session.program import LoadedProgram, elf_of, other_elf
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError, silent
from rvtrace_gdb.support.text import RowPiece, counted, warning
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.json_rows import HistoryRows

_TURN = 0.1  # seconds
_BEGINNING = 1 << 15  # bytes that are tried with other options if the given ones do not fit
_ADVISED = 1 << 14  # bytes that show whether the parameters of a tandem trace are right


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that belong to --follow."""
    group = parser.add_argument_group("following")
    group.add_argument(
        "--follow", action="store_true",
        help="FILE delivers raw bytes: a growing file, a named pipe, a serial device, tcp:HOST:PORT, unix:PATH,"
        ' "-"; decode them as they arrive, up to the end or Ctrl-C',
    )  # fmt: skip
    group.add_argument("--baud", type=inputs.number_from(1, 1 << 31), metavar="N", help="speed of a serial device")
    group.add_argument("-o", "--output", metavar="FILE.rvt", help="also save the bytes as a capture")


class ArrivedOutput(Protocol):
    """What is made of what arrives: pieces of the output."""

    def pieces_of(self, arrived: stream.Arrived) -> Iterator[RowPiece]:
        """Yield what the next piece of a hart's history adds to the output."""

    def end(self, counts: stream.StreamCounts, why: str) -> Iterator[RowPiece]:
        """Yield the last of the output."""


class StreamStatus(Protocol):
    """What a terminal shows meanwhile, see `FollowStatus`."""

    def show(self, counts: stream.StreamCounts, waiting: int, *, ending: bool) -> None:
        """Draw it again, if it is time."""

    def clear(self) -> None:
        """Erase it, because something else will be printed."""

    def say(self, lines: Iterable[str]) -> None:
        """Print lines on standard error."""


class StreamOutput(NamedTuple):
    """What becomes of a stream that is decoded."""

    shown: ArrivedOutput
    status: StreamStatus


class OpenedStream(NamedTuple):
    """A stream that is about to be decoded. *name*: of the stream; *several*: there may be several harts."""

    name: str
    contexts: ContextImages
    several: bool
    cleanup: ExitStack


def run(request: DecodeRequest, options: StreamOptions) -> int:
    """List up to the end and return the exit status. Raises RvtraceError."""
    return run_with(request, options, lambda opened: _listing(request, opened))


def _listing(request: DecodeRequest, opened: OpenedStream) -> StreamOutput:
    source = opened.cleanup.enter_context(Disassemblers(opened.contexts))
    paint = request.output.paint()
    shape = HistoryRows() if request.output.json else replace(request.modifiers, paint=paint)
    several, happened = opened.several, request.events
    shown = FollowedRows(source, opened.contexts, shape, paint, several=several, happened=happened)
    return StreamOutput(shown, FollowStatus(opened.name, not request.output.quiet))


def run_with(
    request: DecodeRequest, options: StreamOptions, output_of: Callable[[OpenedStream], StreamOutput]
) -> int:
    """Decode up to the end, with an output of its own, and return the exit status. Raises RvtraceError."""
    trace = request.trace.of_program()
    program, said = _program(request.trace, trace.capture(b"", ()))
    contexts = program.in_contexts(program.image())
    with ExitStack() as cleanup:
        stream = open_stream(request.trace.file, baud=options.baud)
        cleanup.callback(stream.close)
        said += [] if request.output.quiet else [_beginning(stream)]
        several = request.hart is None and not trace.source.alone
        shown, status = output_of(OpenedStream(stream.name, contexts, several, cleanup))
        decoder = _decoder(request.trace, trace, contexts)
        kept = None if options.output is None else cleanup.enter_context(closing(StreamFile(options.output)))
        spool = Spool(None if kept is None else kept.file)
        followed = _Followed(request, trace, stream, spool, decoder, shown, status)
        with _keeping(kept, followed):
            why = followed.to_the_end(said)
        return _ended(followed, why, request)


def _decoder(request: RequestedTrace, trace: RawTrace, contexts: ContextImages) -> FollowedStream:
    wrapped, once = request.raw is not None and request.raw.wrapped, request.stop_at_error
    if trace.source.frames is None:
        return StreamFollower(trace.source, contexts, wrapped=wrapped, stop_at_error=once)
    from rvtrace_gdb.session.formats.framed_stream import FramedFollower  # few streams are in frames

    return FramedFollower(trace.source, trace.source.frames, contexts, wrapped=wrapped, stop_at_error=once)


@contextmanager
def _keeping(kept: StreamFile | None, followed: "_Followed") -> Iterator[None]:
    """Save what has arrived as a capture, however the context ends. Raises CaptureError."""
    try:
        yield
    except inputs.RawError:
        if kept is not None:
            kept.remove()  # the bytes are not a trace
        kept = None
        raise
    finally:
        followed.reader.join()
        followed.status.clear()
        if kept is not None:
            followed.save(kept)


class _Followed:
    def __init__(
        self,
        request: DecodeRequest,
        trace: RawTrace,
        stream: Stream,
        spool: Spool,
        decoder: FollowedStream,
        shown: ArrivedOutput,
        status: StreamStatus,
    ) -> None:
        self.reader, self.decoder, self.status = StreamReader(stream, spool), decoder, status
        self._request, self._trace = request, trace
        self._stream, self._spool, self._shown = stream, spool, shown
        self._warned: set[str] = set()
        self._stopped: str | None = None
        self._first, self._advised, self.hinted = True, False, False
        self.beginning = bytearray()
        self.harts: set[int] = set()

    def to_the_end(self, lines: list[str]) -> str:
        """Decode what arrives, and return why it ended. *lines*: lines to print at the start.

        Ctrl-C ends it in an orderly way. Raises RvtraceError if the bytes are not a trace.
        """
        with _stopping(self._stop_reading):
            self.reader.start()
            self.status.say(lines)
            while (data := self._spool.get(_TURN)) is not None:
                self.status.say(self._stream.notices())
                if data:
                    self._feed(data)
                self._warn(self._unkept())
                self._warn(self._late())
                self._warn(self._rest())
                self.status.show(self.decoder.counts, self._spool.waiting, ending=self._stopped is not None)
            self.status.say(self._stream.notices())
            self._warn(self._unkept())
            self._advise(0)
            self._print_arrived(self.decoder.finish())
            why = self._stopped or ("broken off" if self.reader.failure else "the end of the stream")
            self._write(self._shown.end(self.decoder.counts, why))
        return why

    def save(self, kept: StreamFile) -> None:
        """Save what has arrived and could be stored. Raises CaptureError."""
        count, came, quiet = self._spool.kept, self._spool.written, self._request.output.quiet
        if not count:
            kept.remove()
            why = "nothing arrived" if not came else f"none of the {came} bytes that arrived could be kept"
            self.status.say([warning(f"{why}: {kept.path} is not written")])
            return
        with ProgressLine(not quiet) as progress:
            kept.save(count, lambda data: self._trace.capture(data, self.decoder.started), progress)
        if not quiet:
            how_many = str(count) if count == came else f"the first {count} of the {came}"
            self.status.say([f"Saved {how_many} bytes of trace to {kept.path}."])

    def _stop_reading(self, why: str) -> None:
        """Stop reading; what has arrived is still decoded. A second Ctrl-C also ends that."""
        if self._stopped is not None:
            raise KeyboardInterrupt
        self._stopped = why
        self.reader.stop()

    def _feed(self, data: bytes) -> None:
        if self._first:
            inputs.check_beginning(data, self._stream.name)
            self._first = False
        self.beginning += data[: _BEGINNING - len(self.beginning)]
        self._print_arrived(self.decoder.feed(data))
        counts = self.decoder.counts
        if self._warn(stream.problem(counts)):
            self.status.say(self.judged()[0])
        self._warn(stream.strangers(counts))
        self._advise(_ADVISED)
        if self._request.trace.stop_at_error and counts.losses and self._stopped is None:
            self._stop_reading("the first loss (--stop-at-error)")

    def _advise(self, least: int) -> None:
        """Say what the first bytes say against their options, once, when *least* bytes have arrived."""
        if not self._advised and len(self.beginning) >= least:
            self._advised = True
            self.status.say(self._trace.advice(bytes(self.beginning)))

    def _print_arrived(self, arrived: Iterator[stream.Arrived]) -> None:
        for one in arrived:
            self.harts.add(one.hart)
            if self._request.hart in (None, one.hart):
                self._write(self._shown.pieces_of(one))

    def _write(self, pieces: Iterator[RowPiece]) -> None:
        for piece in pieces:
            self.status.clear()
            output.write(piece)

    def judged(self) -> tuple[list[str], str | None]:
        """Return a hint if the first bytes fit other options far better, and why they are not a trace, if so."""
        session = Session()
        try:
            capture = self._trace.capture(bytes(self.beginning), self.decoder.started)
            session.open_capture(capture, self._stream.name, self._request.trace.elf_of_settings())
            decoded = session.harts()
            hint = hints_of_history(capture, decoded, silent)
        except RvtraceError:
            return [], None
        self.hinted |= bool(hint)
        return hint, None if self.hinted else raw_import.why_unreadable(capture, decoded.harts)

    def _warn(self, line: str | None) -> bool:
        """Print a line, each one only once; return whether it was printed now."""
        if line is None or line in self._warned:
            return False
        self._warned.add(line)
        self.status.say([line])
        return True

    def _rest(self) -> str | None:
        """Return a line if much remains to be decoded after Ctrl-C."""
        if self._stopped is None or self._spool.waiting < _BEGINNING or self._request.output.quiet:
            return None
        return f"{self._stopped}: what arrived before is still decoded; a second Ctrl-C also ends that"

    def _unkept(self) -> str | None:
        """Return a line if the file of -o cannot be written any more. Decoding continues, so that less is lost."""
        return None if self.failure is None else warning(self.failure)

    @property
    def failure(self) -> NotKept | None:
        """The error in writing the file of -o, None if there is none."""
        return self._spool.failure

    def _late(self) -> str | None:
        """Return a line if decoding is too slow, so that the sender has to wait."""
        if not self._spool.held_up or self._stream.lasting:
            return None
        less = "" if self._request.events else ", and --events takes far less time than every instruction"
        return warning(
            f"{size(WAITING)} wait to be decoded, and the sender also has to wait; data that a probe cannot buffer is"
            f" lost{'' if self.failure else f': -o FILE.rvt keeps it on disk{less}'}"
        )


@contextmanager
def _stopping(stop: Callable[[str], None]) -> Iterator[None]:
    """Call *stop* on Ctrl-C and other signals that end a process; signals that are ignored (nohup) stay ignored."""

    def handler(number: int, frame: FrameType | None) -> None:
        stop("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _program(request: RequestedTrace, capture: Capture) -> tuple[LoadedProgram, list[str]]:
    """Return the program that runs, and notes about it. Raises NoElf, BadElf, WrongXlen."""
    settings = request.raw.file if isinstance(request.raw, SettingsBytes) else "the command line"
    path = request.elf_of_settings() or elf_of(capture, settings)
    program = LoadedProgram(
        path, code=capture.code, images=capture.images, xlen=capture.xlen, elfs=capture.elfs, patched=capture.patched
    )
    image = program.image()
    if image.xlen != capture.xlen:
        raise WrongXlen(program.path, image.xlen, settings, capture.xlen)
    other = other_elf(capture.elf, image)
    return program, [] if other is None else [other]


def _beginning(stream: Stream) -> str:
    end = "Ctrl-C ends" if stream.endless else "up to its end or Ctrl-C"
    return f"following {stream.name} ({stream.kind}); {end}"


def _ended(followed: _Followed, why: str, request: DecodeRequest) -> int:
    """Print how it ended and return the exit status. Raises FollowError for no trace."""
    counts, failure, hart = followed.decoder.counts, followed.reader.failure, request.hart
    if not request.output.quiet:
        followed.status.say([f"{why}: {summary(counts)}"])
    followed.status.say(followed.decoder.remarks())
    unread = _unread(followed, request)
    if hart is not None and followed.harts and hart not in followed.harts:
        there = harts_text(sorted(followed.harts))
        followed.status.say([warning(f"hart {hart} is not in this stream, which has {there}")])
    if failure is not None:
        raise failure
    if unread is not None:
        raise FollowError(f"{request.trace.name}: {unread}")
    return 0 if followed.failure is None else 1


def _unread(followed: _Followed, request: DecodeRequest) -> str | None:
    """Return why the bytes are not a trace, None if they are one; print a warning if nothing could be decoded."""
    counts = followed.decoder.counts
    if raw_import.is_dense(counts.instructions, counts.bytes):
        return None
    if counts.hart_events and not counts.instructions:
        what = counted(counts.hart_events, "event")
        if not request.events:
            followed.status.say([f"note:     no flow in this stream, but {what} of harts: --events lists them"])
        return None
    hint, unread = followed.judged()
    if not counts.instructions and counts.problem is None and unread is None:
        what = "without a synchronizing message at which decoding can start"
        if isinstance(request.trace.raw, TandemBytes):
            what = "without an instruction that retired"
        followed.status.say([warning(f"{counted(counts.bytes, 'byte')} {what}"), *hint])
    return unread
