"""`rvtrace sim`: run a program on the simulated target and serve it to OpenOCD, until Ctrl-C or SIGTERM.

Its standard output is lines for people, or JSON objects for programs.
"""

import argparse
import os
import signal
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rvtrace_gdb.console import commands, output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.sim import encoder, etrace, tandem_ports, target
from rvtrace_gdb.console.commands.sim.request import ServedAt, SimRequest, sim_request
from rvtrace_gdb.console.commands.sim.target import Streams, openocd_config, target_description
from rvtrace_gdb.console.help_pages import HARDWARE, group_of
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.decode.program.csrs import trap_text
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import OutputError, write_file
from rvtrace_gdb.support.text import json_line, printable
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugSpec
from rvtrace_gdb.transport.simulated.debug.run_control import MOST
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, LostCause, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from rvtrace_gdb.transport.simulated.server import Backdoor, Server, listen_tcp, listen_unix

__all__ = ["SimError", "add_arguments", "openocd_config", "run", "target_description"]


class SimulationReport(ABC):
    """The reports of the simulation. *quiet*: only the output of the program itself."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    @abstractmethod
    def serving(
        self,
        request: SimRequest,
        machine: Machine,
        config: str,
        where: str,
        streams: Mapping[str, object],
        tandem: Sequence[str],
    ) -> None:
        """Report the start. *config*: OpenOCD's configuration; *where*: the address it listens at; *streams*: the
        destinations of trace that leaves the chip; *tandem*: the files of tandem traces, by hart.
        """

    @abstractmethod
    def printed(self, text: bytes) -> None:
        """Report output of the program."""

    @abstractmethod
    def exited(self, status: int) -> None:
        """Report the exit of the program."""

    @abstractmethod
    def noted(self, text: str) -> None:
        """Report what the user should know of the target."""

    @abstractmethod
    def lost_cause(self, hart: int, lost: LostCause) -> None:
        """Report a trap whose handler could not run: the cause is overwritten."""

    @abstractmethod
    def fired(self, name: str, number: int) -> None:
        """Report a trigger output of a component."""


class ReportLines(SimulationReport):
    """Reports as lines for people."""

    def serving(
        self,
        request: SimRequest,
        machine: Machine,
        config: str,
        where: str,
        streams: Mapping[str, object],
        tandem: Sequence[str],
    ) -> None:
        for name, place in streams.items():
            self._say(f"the trace of {name} goes to {place}")
        for file in tandem:
            self._say(f"tandem trace: {file}")
        hart = machine.hart
        state = "runs" if request.run_at_once else "waits for the debugger"
        several = f"{len(machine.harts)} harts " if len(machine.harts) > 1 else ""
        self._say(f"{several}RV{hart.xlen}{hart.extensions}: {request.elf} {state} at {hart.pc:#x}")
        kept = f", also in {request.files.openocd}" if request.files.openocd else ""
        self._say(f"OpenOCD configuration{kept}:\n")
        self._say("".join(f"    {line}\n" for line in config.splitlines()))
        if request.served.side_door:
            self._say(f"the side door is {request.served.side_door} (docs/simulated-target.md describes it)")
        self._say(f"listening on {where}; end with Ctrl-C")
        sys.stdout.flush()

    def printed(self, text: bytes) -> None:
        sys.stdout.write(text.decode("utf-8", "replace"))
        sys.stdout.flush()

    def exited(self, status: int) -> None:
        self._say(f"program ended with status {status}")
        sys.stdout.flush()

    def noted(self, text: str) -> None:
        self._say(f"note: {text}")
        sys.stdout.flush()

    def lost_cause(self, hart: int, lost: LostCause) -> None:
        interrupt = lost.cause.bit_length() >= 32  # the top bit of mcause, of 32 or 64
        cause, vector = trap_text(lost.cause & 0xFFF, interrupt), f"{lost.vector:#x}"
        self._say(
            f"hart {hart}: {cause} at {lost.epc:#x}, mtval {lost.tval:#x}. The code at mtvec, {vector}, faults itself,"
            f" which overwrites mcause, mepc and mtval: `hbreak *{vector}` before the program runs keeps them"
        )
        sys.stdout.flush()

    def fired(self, name: str, number: int) -> None:
        self._say(f"{name}: trigger output {number}")
        sys.stdout.flush()

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line)


class ReportObjects(SimulationReport):
    """Reports for programs: one JSON object per line, with its kind in the field `event`."""

    def serving(
        self,
        request: SimRequest,
        machine: Machine,
        config: str,
        where: str,
        streams: Mapping[str, object],
        tandem: Sequence[str],
    ) -> None:
        hart = machine.hart
        self._say(
            "serving", listening=where, elf=request.elf, addr=f"{hart.pc:#x}", running=request.run_at_once,
            xlen=hart.xlen, isa=f"RV{hart.xlen}{hart.extensions}", harts=len(machine.harts), openocd=config,
            streams={name: str(target) for name, target in streams.items()} or None,
            tandem=list(tandem) or None, target=request.files.target,
            **{"openocd-file": request.files.openocd, "side-door": request.served.side_door},
        )  # fmt: skip

    def printed(self, text: bytes) -> None:
        self._say("output", text=text.decode("utf-8", "replace"))

    def exited(self, status: int) -> None:
        self._say("exited", status=status)

    def noted(self, text: str) -> None:
        self._say("note", text=text)

    def lost_cause(self, hart: int, lost: LostCause) -> None:
        facts = {"mcause": f"{lost.cause:#x}", "mepc": f"{lost.epc:#x}", "mtval": f"{lost.tval:#x}"}
        self._say("lost-cause", hart=hart, **facts, mtvec=f"{lost.vector:#x}")

    def fired(self, name: str, number: int) -> None:
        self._say("trigger", component=name, number=number)

    def _say(self, event: str, **facts: object) -> None:
        sys.stdout.write(json_line({"event": event, **facts}) + "\n")
        sys.stdout.flush()


DEFAULT_PORT = 9824


class SimError(RvtraceError):
    """Another error that prevents the simulation from starting."""


EXAMPLES = (
    ("sim --elf app.elf --write-openocd sim.cfg --write-target rvtrace.toml", "then `openocd -f sim.cfg`"),
    ("sim --elf app.elf --ctr 1.0", "a hart with Control Transfer Records"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace sim`."""
    parser.description = (
        "Runs a RISC-V program on a simulated target with a debug module, a trace encoder and a trace RAM,"
        " and serves its JTAG port to OpenOCD (remote_bitbang). Prints the OpenOCD configuration to use."
    )
    parser.usage = "%(prog)s --elf FILE [--port PORT | --unix PATH] [options]"
    _add_program(parser)
    _add_target(parser)
    built = group_of(parser, HARDWARE, "the trace encoder")
    encoder.add_arguments(built)
    etrace.add_arguments(built)
    encoder.add_ctr_arguments(group_of(parser, HARDWARE, "Control Transfer Records"))
    tandem_ports.add_tandem_arguments(group_of(parser, HARDWARE, "the tandem trace"))
    _add_files(parser)
    output.add_arguments(parser, "what it serves, and for what happens")
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def _add_program(parser: argparse.ArgumentParser) -> None:
    """Add the program, and where the JTAG port is served."""
    parser.add_argument("--elf", required=True, metavar="FILE", help="the program to load")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"TCP port on 127.0.0.1, 0: a free one (default {DEFAULT_PORT})"
    )
    where.add_argument("--unix", metavar="PATH", help="listen on a unix socket instead")


def _add_target(parser: argparse.ArgumentParser) -> None:
    """Add what the target is built of, except for its trace encoders."""
    parser.add_argument("--xlen", choices=("auto", "32", "64"), default="auto", help="XLEN (default: the program's)")
    parser.add_argument(
        "--isa", metavar="LETTERS", help=f"extensions (default {target.EXTENSIONS}, or those of a shipped --target)"
    )
    parser.add_argument("--debug-spec", choices=[spec.value for spec in DebugSpec], default=DebugSpec.V1_0.value)
    parser.add_argument(
        "--trace-size", type=_size_argument, metavar="BYTES", help="trace RAM: a power of two (default 65536)"
    )
    parser.add_argument(
        "--target", metavar="FILE|NAME",
        help="build the trace components of this target description (docs/simulated-target.md), or of a shipped target"
        " (`rvtrace targets`) with its limits, instead of an encoder for each hart and a RAM sink",
    )  # fmt: skip
    parser.add_argument(
        "--ram",
        type=_address_argument,
        metavar="ADDRESS",
        help="where the main memory is (default 0x80000000, 128 MiB)",
    )
    parser.add_argument(
        "--devices", metavar="FILE",
        help="how trace components are built, one by one (docs/simulated-target.md)",
    )  # fmt: skip
    parser.add_argument(
        "--stream", action="append", default=[], metavar="NAME=WHERE",
        help="where the trace of a pin interface or a bridge goes: a file, tcp:PORT or unix:PATH; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--harts", type=int, metavar="N",
        help=f"how many harts, 1 to {MOST}, each with its trace encoder; all start at the program's entry, which"
        " gives each its stack (docs/simulated-target.md) (default 1, or those that --target has encoders for)",
    )  # fmt: skip
    parser.add_argument(
        "--separate-harts", action="store_true",
        help="a gdb server for each hart, from --gdb-port on, instead of one in which each hart is a thread",
    )  # fmt: skip


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Add what is written for others, and how they reach the target."""
    parser.add_argument("--write-target", metavar="FILE", help="write the target description (rvtrace.toml) to FILE")
    parser.add_argument("--write-openocd", metavar="FILE", help="write the OpenOCD configuration to FILE")
    parser.add_argument("--gdb-port", type=int, default=3333, help="of the OpenOCD configuration (default %(default)s)")
    parser.add_argument("--tcl-port", type=int, default=6666, help="of the OpenOCD configuration (default %(default)s)")
    parser.add_argument(
        "--run", action="store_true", dest="run_at_once", help="start the program at once, not when a debugger says so"
    )
    parser.add_argument(
        "--side-door", metavar="PATH",
        help="also serve this unix socket: raw reads of memory, and commands to lose trace, to jam a sink, ...",
    )  # fmt: skip
    parser.add_argument(
        "--log-retired", metavar="FILE",
        help="write the address of each instruction retired while traced, for comparison; for several harts to FILE.0,"
        " ...",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Simulate until interrupted, and return the exit status: 0, or 1 after a message why it could not start."""
    try:
        with ExitStack() as cleanup:
            _simulate(sim_request(args), cleanup)
    except RvtraceError as error:
        print(f"rvtrace: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


def _simulate(request: SimRequest, cleanup: ExitStack) -> None:
    described = target.loaded(request.components)
    streams, openocd, files = Streams(cleanup), request.openocd, request.files
    with ProgressLine(not request.output.quiet, "loading the program"):
        machine = _machine(request, described, streams)
    listener = _listener(request.served, cleanup)
    side_door = _side_door(request.served.side_door, machine, cleanup)
    tandem = tandem_ports.with_tandem_ports(request.tandem, request.elf, machine, cleanup)
    config = openocd_config(
        listener, openocd.gdb_port, openocd.tcl_port, machine.hart, len(machine.harts), openocd.separate,
        machine.dtm.idcode, machine.off,
    )  # fmt: skip
    if files.openocd:
        _write_text_file(files.openocd, config)
    if files.target:
        _write_text_file(
            files.target, target_description(machine, Path(request.elf).stem, openocd.tcl_port, described, tandem)
        )
    server = Server(machine, listener, side_door)
    _stop_on_signals(server.stop, cleanup)
    if files.retired:
        _log_retired(machine, files.retired, cleanup)
    said = (ReportObjects if request.output.json else ReportLines)(quiet=request.output.quiet)
    machine.printed, machine.exited, machine.fired = said.printed, said.exited, said.fired
    machine.lost_cause = said.lost_cause
    if not request.run_at_once:
        machine.halt_at_start()
    said.serving(request, machine, config, _listener_name(listener), streams.opened, [port.file for port in tandem])
    if untraced := target.without_components(request.components, described):
        said.noted(untraced)
    server.serve()


def _log_retired(machine: Machine, path: str, cleanup: ExitStack) -> None:
    """Log the instructions that harts with an encoder, a TRACER or TACIT retire while it traces."""

    def log_of(hart: int) -> Callable[[Sequence[HartItem]], None]:
        return cleanup.enter_context(_retired_log(path if len(machine.harts) == 1 else f"{path}.{hart}"))

    for part, tracer in zip(machine.wiring.encoders, machine.tracers, strict=True):
        tracer.watch = log_of(part.hart)
    for branches in machine.branch_tracers:
        branches.watches = {hart: log_of(hart) for hart in range(len(machine.harts))}
    for hart, tacit in machine.tacit_encoders.items():
        tacit.watch = log_of(hart)


@contextmanager
def _retired_log(path: str) -> Iterator[Callable[[Sequence[HartItem]], None]]:
    """Yield a function that writes the addresses of instructions to a file, in hexadecimal, one per line."""
    known: dict[HartBlock, str] = {}

    def write(retired: Sequence[HartItem]) -> None:
        with _errors_of_file(path):
            for item in retired:
                if isinstance(item, HartBlock):
                    file.write(known.get(item) or known.setdefault(item, _lines(item.pcs)))
                elif not isinstance(item, TrapEntry | Situation | Accessed):
                    block, count = item
                    file.write(_lines(block.pcs[:count]))
            file.flush()  # so that the file is complete however the simulation ends

    with _errors_of_file(path):
        file = open(path, "w", encoding="ascii")  # noqa: SIM115 - it is closed below
    try:
        yield write
    finally:
        with _errors_of_file(path):
            file.close()


@contextmanager
def _errors_of_file(path: str) -> Iterator[None]:
    """Convert errors of the operating system within this context to SimError about that file."""
    try:
        yield
    except OSError as error:
        raise SimError(f"cannot write {path}: {error.strerror}") from None


def _lines(pcs: Sequence[int]) -> str:
    return "".join(f"{pc:x}\n" for pc in pcs)


def _machine(request: SimRequest, described: Description | None, streams: Streams) -> Machine:
    wanted, components = request.harts, request.components
    extensions = target.extensions(wanted.isa, components)
    if extensions.strip("IMAFDC") or "I" not in extensions or ("D" in extensions and "F" not in extensions):
        raise SimError(f"--isa {wanted.isa}: give letters of IMAFDC: always I, and F if D is given")
    size = 0x1_0000 if components.trace_size is None else components.trace_size
    if size & size - 1 or not 8 <= size <= 1 << 28:
        raise SimError(f"--trace-size {size}: give a power of two from 8 bytes to 256 MiB")
    harts = target.harts(wanted.count, described)
    if not 1 <= harts <= MOST:
        raise SimError(f"--harts {harts}: give 1 to {MOST}")
    ram = wanted.ram
    memory_map = MemoryMap(trace_ram_size=size) if ram is None else MemoryMap(trace_ram_size=size, ram=ram)
    machine = build(
        request.elf,
        xlen=wanted.xlen,
        extensions=extensions,
        spec=DebugSpec(wanted.debug_spec),
        memory_map=memory_map,
        ctr=encoder.built_ctr(wanted.ctr),
        harts=harts,
        wiring=target.wiring(components, harts, described, memory_map, streams),
    )
    target.set_identity(machine, components)
    if described is not None and described.xlen not in (None, machine.hart.xlen):
        raise SimError(
            f"{components.target}: [target]: xlen: is {described.xlen}, and {request.elf} is for RV{machine.hart.xlen}"
        )
    return machine


def _listener(served: ServedAt, cleanup: ExitStack) -> socket.socket:
    if served.unix:
        return _unix(served.unix, cleanup)
    listener = listen_tcp(served.port)
    cleanup.callback(listener.close)
    return listener


def _side_door(path: str | None, machine: Machine, cleanup: ExitStack) -> Backdoor | None:
    if not path:
        return None
    return Backdoor(
        machine.bus, _unix(path, cleanup), machine.components, len(machine.harts), machine.switch_power
    )


def _unix(path: str, cleanup: ExitStack) -> socket.socket:
    listener = listen_unix(path)
    cleanup.callback(os.unlink, path)
    cleanup.callback(listener.close)
    return listener


def _stop_on_signals(stop: Callable[[], None], cleanup: ExitStack) -> None:
    """Let Ctrl-C and SIGTERM end the server in an orderly way; they are ignored while it cleans up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        cleanup.callback(signal.signal, number, signal.signal(number, lambda *_: stop()))


def _write_text_file(path: str, text: str) -> None:
    try:
        write_file(path, text.encode(errors="surrogateescape"))
    except OutputError as error:
        raise SimError(f"cannot write {path}: {error.why}") from None


def _listener_name(listener: socket.socket) -> str:
    name = listener.getsockname()
    return name if isinstance(name, str) else f"{name[0]}:{name[1]}"


def _size_argument(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes") from None


def _address_argument(text: str) -> int:
    address = commands.address_argument(text)
    if address % 8:
        raise argparse.ArgumentTypeError(f"{text} is not an address that is a multiple of 8")
    return address
