"""`rvtrace serve`: a trace as a target of gdb's remote protocol, for debuggers that have no commands of rvtrace.

A capture is a target without a present: its debuggers go back and forth in what ran. With --connect the target is the
live one, and going backward leads into the past of the trace that was recorded there.
"""

import argparse
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.serve.instructions import ServedPlace, fields, lines
from rvtrace_gdb.console.commands.serve.monitor import Monitor
from rvtrace_gdb.console.commands.serve.monitor.recording import RecordingCommands
from rvtrace_gdb.console.main import COMMANDS
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import OPEN_TRACES, OpenTrace, RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.progress import on_signals
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.program import placement
from rvtrace_gdb.session.proxy.backend import RegisterBatches
from rvtrace_gdb.session.proxy.clients.program_files import ProgramFiles
from rvtrace_gdb.session.proxy.connection import StubAbsent
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy, listen_at_port
from rvtrace_gdb.session.replay.debugger import PlainService, ProxyDebugger
from rvtrace_gdb.session.replay.record_btrace import Btrace
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.text import printable

EXAMPLES = (
    ("serve demo.rvt", "wait for gdb, LLDB or an IDE"),
    ("serve demo.rvt --port 2345 --once", "at port 2345, for one debugger"),
    ("serve --connect :3333 --elf demo.elf", "before OpenOCD"),
)

_LIVE = "the live trace"
_TURN = 0.01  # seconds
_MOST_PORT = (1 << 16) - 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NothingThere(RvtraceError):
    """Nothing that speaks gdb's protocol is where --connect says."""

    def __init__(self, absent: StubAbsent) -> None:
        at = absent.address.text
        super().__init__(f"--connect {at}: no OpenOCD and no other gdb stub: {absent.why} (start it first)")


class ServeUsage(RvtraceError):
    """Arguments of `rvtrace serve` that exclude each other, or are missing."""


@dataclass(frozen=True)
class ServeRequest:
    """*trace*: the capture, None: the target at *stub*. *path*: of a unix socket, None: a TCP port, 0 for any.

    *elf*: the program of the target at *stub*; *target*: its description; *save*: the file that clients can write.
    """

    output: OutputOptions
    trace: RequestedTrace | None
    stub: StubAddress | None
    port: int
    path: str | None
    is_once: bool
    values: str
    elf: str | None = None
    target: str | None = None
    save: str | None = None


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace serve`."""
    parser.usage = "%(prog)s FILE | --connect HOST:PORT [--port N | --unix PATH]\n                     [options]"
    parser.description = (
        "Waits for debuggers that speak gdb's remote protocol, one after the other: gdb, also one without Python, LLDB,"
        " IDEs. They go back and forth in a trace with their own commands. Prints what to type in them. Ctrl-C ends it."
    )
    what = 'a capture, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input'
    parser.add_argument("capture", nargs="?", metavar="FILE", help=what)
    parser.add_argument(
        "--connect", metavar="HOST:PORT",
        help="no FILE: stand between debuggers and the target, at the port, or the socket's PATH, of OpenOCD or QEMU",
    )  # fmt: skip
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--port", type=inputs.number_from(0, _MOST_PORT), default=0, metavar="N",
        help="wait at this TCP port of this machine alone (default: any that is free)",
    )  # fmt: skip
    place.add_argument("--unix", metavar="PATH", help="wait at a socket, which other users cannot connect to")
    parser.add_argument("--once", action="store_true", help="end when the first debugger leaves")
    parser.add_argument(
        "--values", choices=("on", "registers", "off"), default="on",
        help="what is reconstructed of a trace that has only addresses: registers and memory (on, the default),"
        " registers alone, or nothing",
    )  # fmt: skip
    parser.add_argument(
        "--target", metavar="FILE|NAME",
        help="with --connect: the target description (rvtrace.toml), or a shipped one (`rvtrace targets`)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE.rvt", help="with --connect: the file that `monitor trace save` writes"
    )
    trace_answer.add_arguments(parser, "the place where it waits", EXAMPLES, run, color=False)


def run(args: argparse.Namespace) -> int:
    """Serve debuggers until Ctrl-C. Raises ServeUsage, ListenFailed, NothingThere, and as `RequestedTrace.open`."""
    request = _request(args)
    if request.port and request.path is None:
        listen_at_port(request.port).close()  # reading the trace may take long
    with CommandOutput(request.output, "reading the trace") as shown:
        session = Session()
        try:
            return _served(session, request, shown)
        finally:
            session.close()


def _request(args: argparse.Namespace) -> ServeRequest:
    """Return what the command line asks for. Raises ServeUsage, and as `raw.trace_request`."""
    if (args.capture is None) == (args.connect is None):
        raise ServeUsage("give a FILE, or --connect HOST:PORT for a live target")
    live = args.connect is not None
    if (args.target, args.output) != (None, None) and not live:
        raise ServeUsage("--target and --output are for --connect: a capture is there already")
    if live and len(args.elf) > 1:
        raise ServeUsage("--elf is given more than once: a target has one program")
    return ServeRequest(
        output=OutputOptions.from_arguments(args),
        trace=None if live else raw.trace_request(args, args.capture),
        stub=_stub_address(args.connect) if live else None,
        port=args.port,
        path=args.unix,
        is_once=args.once,
        values=args.values,
        elf=inputs.elf_name(args.elf[0]) if live and args.elf else None,
        target=args.target,
        save=args.output,
    )


def _stub_address(text: str) -> StubAddress:
    """Return the address in HOST:PORT, :PORT, PORT, or the path of a socket. Raises ServeUsage."""
    if "/" in text:
        return StubAddress(text, 0)
    host, _, port = text.rpartition(":")
    if not (port.isdecimal() and port.isascii() and 0 < int(port) <= _MOST_PORT):
        raise ServeUsage(f"--connect {text}: is not HOST:PORT, nor the PATH of a socket")
    return StubAddress(host or "localhost", int(port))


def _served(session: Session, request: ServeRequest, shown: CommandOutput) -> int:
    file = _LIVE if request.trace is None else request.trace.name
    about = () if request.trace is None else _open(session, request.trace, shown)
    OPEN_TRACES[file] = OpenTrace(session, about)

    def say(line: str) -> None:
        shown.say([f"rvtrace serve: {printable(line)}"])

    context = Context(elf=request.elf, target_file=request.target, values=request.values)
    program = _program_path(request, session)
    files = ProgramFiles(lambda: program)
    own = {} if request.trace is not None else RecordingCommands(request.save).own_commands()
    monitor = Monitor(session, file, COMMANDS, own, replays=request.trace is not None)
    debugger = ProxyDebugger(
        session,
        context,
        (monitor, Btrace(session), RegisterBatches(), *([] if program is None else [files])),
        PlainService(say, request.is_once, worded=monitor.worded),
    )
    session.debugger = debugger
    try:
        proxy = debugger.listen(request.stub, request.port, shown.progress, request.path)
    except StubAbsent as error:
        raise NothingThere(error) from None
    with on_signals(_SIGNALS, lambda _: proxy.request_end()):
        _announce(ServedPlace(proxy.where, proxy.port, program, _sources(session)), request, shown)
        monitor.prepare(lambda: proxy.is_running)
        _prepare_calls(session, proxy)
        proxy.wait()
    files.close()
    return 0


def _open(session: Session, trace: RequestedTrace, shown: CommandOutput) -> tuple[str, ...]:
    """Open the trace, decode it, and say what it has. Returns what is said of the capture itself."""
    about = trace.open(session)
    decoded = session.harts(progress=shown.progress)
    hints = hints_of_history(session.capture(), decoded, shown.progress)
    shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hints])
    return tuple(about)


def _prepare_calls(session: Session, proxy: Proxy) -> None:
    """Find the calls in a capture while no client waits for the session's lock: lists of functions need them."""

    def until_needed(label: str, done: int, total: int | None = None) -> None:
        if session.proxy_lock.has_waiters or not proxy.is_running:
            raise Cancelled

    while proxy.is_running:
        with suppress(Cancelled), session.lock:
            session.prepare(until_needed)
            return
        time.sleep(_TURN)


def _program_path(request: ServeRequest, session: Session) -> str | None:
    """Return the path of the program, None if there is none or it is not where it was linked for."""
    name = request.elf if request.trace is None else session.elf
    path, bias = (None, 0) if name is None else placement(name)
    return None if bias else path


def _sources(session: Session) -> tuple[tuple[str, str], ...]:
    """Return where the sources of a pack are."""
    unpacked = session.capture().unpacked if session.has_trace() else None
    return () if unpacked is None else unpacked.substitutes


def _announce(place: ServedPlace, request: ServeRequest, shown: CommandOutput) -> None:
    shown.progress.__exit__(None, None, None)
    if shown.json:
        shown.facts(fields(place))
        return
    shown.rows(lines(place))
    sys.stdout.flush()
