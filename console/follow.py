"""`rvtrace decode --follow`: what a trace probe delivers is decoded as it arrives."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from types import FrameType

from rvtrace_gdb.console import follow_source, hints, raw
from rvtrace_gdb.console.follow_output import Shown
from rvtrace_gdb.console.follow_source import Made
from rvtrace_gdb.console.follow_status import Status, of, size, summary
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.session import following, unreadable
from rvtrace_gdb.session.beginning import elf_of
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.session.decoding import other_elf
from rvtrace_gdb.session.errors import WrongXlen
from rvtrace_gdb.session.following import Following
from rvtrace_gdb.session.following_keep import Kept
from rvtrace_gdb.session.following_reading import WAITING, NotKept, Reader, Spool, Stream, open_stream
from rvtrace_gdb.session.program import Program
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.lines import warning
from rvtrace_gdb.support.output import keep
from rvtrace_gdb.support.progress import silent
from rvtrace_gdb.support.text import rows
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.json_rows import HistoryRows
from rvtrace_gdb.views.listing import Modifiers

_TURN = 0.1  # seconds
_ROWS = 1 << 10  # written at once
_BEGINNING = 1 << 15  # bytes that other options are tried with, where these do not fit
_ADVISED = 1 << 14  # bytes of a tandem trace that tell whether its parameters are right


class FollowError(RvtraceError):
    """Arguments of `rvtrace decode --follow` that do not fit together."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that are for --follow."""
    group = parser.add_argument_group("following")
    group.add_argument(
        "--follow", action="store_true",
        help="FILE is raw bytes that arrive: a file that grows, a named pipe, a serial device, tcp:HOST:PORT,"
        ' unix:PATH, "-"; decode as they do, up to the end or Ctrl-C',
    )  # fmt: skip
    group.add_argument("--baud", type=raw.number_from(1, 1 << 31), metavar="N", help="speed of a serial device")
    group.add_argument("-o", "--output", metavar="FILE.rvt", help="keep the bytes as a capture, too")


def check_unused(args: argparse.Namespace) -> None:
    """Raises `FollowError` for options that nothing is followed with."""
    for name in ("baud", "output"):
        if getattr(args, name) not in (None, False):
            raise FollowError(f"{'-o' if name == 'output' else '--baud'} is for bytes that arrive: add --follow")


def run(args: argparse.Namespace, hart: int | None) -> int:
    """Decode up to the end. *hart*: the only one that is shown. Raises RvtraceError."""
    modifiers, numbers = Modifiers.split(" ".join(args.range))
    if numbers:
        raise FollowError(f"{numbers}: --follow lists all that arrives")
    keep(args.output, [args.capture, args.settings, *args.elf])
    made = follow_source.made(args)
    program, said = _program(args, made.capture)
    contexts = program.in_contexts(program.image())
    with ExitStack() as cleanup:
        stream = open_stream(args.capture, baud=args.baud)
        cleanup.callback(stream.close)
        status = Status(stream.name, not args.quiet)
        said += [] if args.quiet else [_beginning(stream)]
        source = cleanup.enter_context(Disassemblers(contexts))
        several = hart is None and not made.source.alone
        shape = HistoryRows() if args.json else modifiers
        output = Shown(source, contexts, shape, several=several, happened=args.events)
        decoder = Following(made.source, contexts, wrapped=args.wrapped, stop_at_error=args.stop_at_error)
        kept = None if args.output is None else cleanup.enter_context(closing(Kept(args.output)))
        spool = Spool(None if kept is None else kept.file)
        followed = _Followed(args, stream, spool, decoder, output, status, hart, made)
        with _keeping(kept, followed):
            why = followed.to_the_end(said)
        return _ended(followed, why, args, hart)


@contextmanager
def _keeping(kept: Kept | None, followed: "_Followed") -> Iterator[None]:
    """Whatever ends it, what has come becomes a capture. Raises CaptureError."""
    try:
        yield
    except raw.RawError:
        if kept is not None:
            kept.remove()  # that is no trace
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
        args: argparse.Namespace,
        stream: Stream,
        spool: Spool,
        decoder: Following,
        output: Shown,
        status: Status,
        hart: int | None,
        made: Made,
    ) -> None:
        self.reader, self.decoder, self.status = Reader(stream, spool), decoder, status
        self._args, self._stream, self._spool, self._output, self._hart = args, stream, spool, output, hart
        self._made = made
        self._warned: set[str] = set()
        self._stopped: str | None = None
        self._first, self._advised, self.hinted = True, False, False
        self.beginning = bytearray()
        self.harts: set[int] = set()

    def to_the_end(self, said: list[str]) -> str:
        """Decode what comes; why it ended. *said*: when Ctrl-C ends it in order. Raises RvtraceError for no trace."""
        with _stopping(self._stop):
            self.reader.start()
            self.status.say(said)
            while (data := self._spool.get(_TURN)) is not None:
                self.status.say(self._stream.notices())
                if data:
                    self._take(data)
                self._warn(self._unkept())
                self._warn(self._late())
                self._warn(self._rest())
                self.status.show(self.decoder.counts, self._spool.waiting, ending=self._stopped is not None)
            self.status.say(self._stream.notices())
            self._warn(self._unkept())
            self._advise(0)
            self._print(self.decoder.finish())
            why = self._stopped or ("broken off" if self.reader.failure else "the end of the stream")
            self._write(self._output.end(self.decoder.counts, why))
        return why

    def save(self, kept: Kept) -> None:
        """What has come and could be kept. Raises CaptureError."""
        count, came, quiet = self._spool.kept, self._spool.written, self._args.quiet
        if not count:
            kept.remove()
            why = "nothing came" if not came else f"of the {came} bytes that came none could be kept"
            self.status.say([warning(f"{why}: {kept.path} is not written")])
            return
        with ProgressLine(not quiet) as progress:
            kept.save(count, lambda data: self._made.finished(data, self.decoder.started), progress)
        if not quiet:
            how_many = str(count) if count == came else f"the first {count} of the {came}"
            self.status.say([f"Saved {how_many} bytes of trace to {kept.path}."])

    def _stop(self, why: str) -> None:
        """What has come is decoded still; a second Ctrl-C gives that up."""
        if self._stopped is not None:
            raise KeyboardInterrupt
        self._stopped = why
        self.reader.stop()

    def _take(self, data: bytes) -> None:
        if self._first:
            raw.check_beginning(data, self._stream.name)
            self._first = False
        self.beginning += data[: _BEGINNING - len(self.beginning)]
        self._print(self.decoder.feed(data))
        counts = self.decoder.counts
        if self._warn(following.problem(counts)):
            self.status.say(self.judged()[0])
        self._warn(following.strangers(counts))
        self._advise(_ADVISED)
        if self._args.stop_at_error and counts.losses and self._stopped is None:
            self._stop("the first loss, as asked")

    def _advise(self, least: int) -> None:
        """Whether a tandem trace has the parameters that were said, once there are so many bytes of it."""
        for port in self._made.capture.tandem if not self._advised and len(self.beginning) >= least else ():
            self._advised = True
            self.status.say(hints.of_groups(bytes(self.beginning), port.in_force.parameters, port.wrapped))

    def _print(self, arrived: Iterator[following.Arrived]) -> None:
        for one in arrived:
            self.harts.add(one.hart)
            if self._hart is None or one.hart == self._hart:
                self._write(self._output.of(one))

    def _write(self, lines: Iterator[str]) -> None:
        while some := list(islice(lines, _ROWS)):
            self.status.clear()
            sys.stdout.write(rows(some))
            sys.stdout.flush()

    def judged(self) -> tuple[list[str], str | None]:
        """A line when what came first fits other options far better, or none; and why it is no trace, if it is none."""
        session = Session()
        try:
            capture = self._made.finished(bytes(self.beginning), self.decoder.started)
            session.look_at(capture, self._stream.name, raw.elf_of_settings(self._args))
            decoded = session.harts()
            hint = hints.of(capture, decoded, silent)
        except RvtraceError:
            return [], None
        self.hinted |= bool(hint)
        return hint, None if self.hinted else unreadable.why(capture, decoded.harts)

    def _warn(self, line: str | None) -> bool:
        """Once; whether it was now."""
        if line is None or line in self._warned:
            return False
        self._warned.add(line)
        self.status.say([line])
        return True

    def _rest(self) -> str | None:
        """A line when Ctrl-C does not end it soon."""
        if self._stopped is None or self._spool.waiting < _BEGINNING or self._args.quiet:
            return None
        return f"{self._stopped}: what came before is decoded still; once more gives that up"

    def _unkept(self) -> str | None:
        """A line when the file of -o takes no more: decoding goes on, for what is not decoded now is lost."""
        return None if self.failure is None else warning(self.failure)

    @property
    def failure(self) -> NotKept | None:
        """Why not all is in the file of -o."""
        return self._spool.failure

    def _late(self) -> str | None:
        """A line when who sends has to wait for us."""
        if not self._spool.held_up or self._stream.lasting:
            return None
        less = "" if self._args.events else ", and --events takes far less time than every instruction"
        return warning(
            f"{size(WAITING)} wait to be decoded, and who sends has to wait, too; what a probe cannot keep is"
            f" lost{'' if self.failure else f': -o FILE.rvt keeps it on disk{less}'}"
        )


@contextmanager
def _stopping(stop: Callable[[str], None]) -> Iterator[None]:
    """Ctrl-C and kill end it in order; what is ignored (nohup) stays so."""

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


def _program(args: argparse.Namespace, capture: Capture) -> tuple[Program, list[str]]:
    """What runs, and what to say of it. Raises NoElf, BadElf, WrongXlen."""
    path = raw.elf_of_settings(args) or elf_of(capture, args.settings or "the command line")
    program = Program(path, code=capture.code, images=capture.images, xlen=capture.xlen)
    image = program.image()
    if image.xlen != capture.xlen:
        raise WrongXlen(program.path, image.xlen, args.settings, capture.xlen)
    other = other_elf(capture.elf, image)
    return program, [] if other is None else [other]


def _beginning(stream: Stream) -> str:
    end = "Ctrl-C ends" if stream.endless else "up to its end or Ctrl-C"
    return f"following {stream.name} ({stream.kind}); {end}"


def _ended(followed: _Followed, why: str, args: argparse.Namespace, wanted: int | None) -> int:
    """Say how it ended; the exit status. *wanted*: the hart that was asked for. Raises FollowError for no trace."""
    counts, failure = followed.decoder.counts, followed.reader.failure
    if not args.quiet:
        followed.status.say([f"{why}: {summary(counts)}"])
    unread = _unread(followed, args)
    if wanted is not None and followed.harts and wanted not in followed.harts:
        there = ", ".join(map(str, sorted(followed.harts)))
        followed.status.say([warning(f"hart {wanted} is not in this stream, which has hart {there}")])
    if failure is not None:
        raise failure
    if unread is not None:
        raise FollowError(f"{raw.title(args.capture)}: {unread}")
    return 0 if followed.failure is None else 1


def _unread(followed: _Followed, args: argparse.Namespace) -> str | None:
    """Why the bytes are no trace; None: they are one, of which it is said here if there was nothing to decode."""
    counts = followed.decoder.counts
    if unreadable.is_dense(counts.instructions, counts.bytes):
        return None
    hint, unread = followed.judged()
    if not counts.instructions and counts.problem is None and unread is None:
        what = "without a synchronizing message that anything can be decoded after"
        if args.tandem:
            what = "and no instruction in them that retired"
        followed.status.say([warning(f"{of(counts.bytes, 'byte')} {what}"), *hint])
    return unread
