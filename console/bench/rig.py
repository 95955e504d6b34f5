"""Targets that are started as child processes, and the options that choose one: for test benches, demo and tests.

`Rig` is the simulated target and a real OpenOCD connected to it. `QemuRig` is `rvtrace qemu` with a program that waits
for gdb. `rvtrace console` and `rvtrace run` have the same options for what to connect to.
"""

import argparse
import codecs
import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import is_pipe, pipe_refused

PYTHON = sys.executable
"""The interpreter that runs `rvtrace sim` and `rvtrace qemu`."""
STARTUP_SECONDS = 60
ENDING_SECONDS = 20  # killed before it has ended by itself, the simulated target leaves half a log


class RigError(RvtraceError):
    """A part of the rig did not start, or ended; *log*: its output."""

    def __init__(self, what: str, log: str) -> None:
        last = log.strip().splitlines()[-1] if log.strip() else "it printed nothing"
        super().__init__(f"{what}: {last}")
        self.log = log


@contextlib.contextmanager
def held_port(port: int = 0) -> Iterator[int]:
    """Reserve a free local TCP port (*port*, or any) within this context: no other program gets it by chance.

    OpenOCD, QEMU and other programs that use SO_REUSEADDR can listen on it meanwhile (Linux). Raises OSError if *port*
    is in use.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        yield int(holder.getsockname()[1])


class Processes:
    """A target made of child processes, which end with the `with` block. Their files are in *folder*.

    *target_file*: the target description; *gdb_port*: the port that gdb connects to. Subclasses implement `start`.
    """

    def __init__(self, elf: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
        self.elf, self.folder = Path(elf), Path(folder)
        self.target_file = self.folder / "rvtrace.toml"
        self._children: list[subprocess.Popen[bytes]] = []
        self._held = contextlib.ExitStack()
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.hold_ports(self._held)
            self.start()
        except BaseException:  # leave no child behind, whatever happened
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            self.stop()

    def hold_ports(self, held: contextlib.ExitStack) -> None:
        """Choose the ports, which are reserved until a child listens, and when it is started again."""
        self.gdb_port, self.tcl_port = held.enter_context(held_port()), held.enter_context(held_port())

    def start(self) -> None:
        """Start all, and wait until gdb can connect. Raises RigError."""
        raise NotImplementedError

    def stop(self) -> None:
        """End all children, the last started first: OpenOCD aborts if its adapter disappears. Wait until all output of
        the program was passed on.
        """
        with contextlib.ExitStack() as ends:  # all of them even when a wait is interrupted
            for child in self._children:
                ends.callback(_end_child, child)
        self._children.clear()
        if self._reader is not None:
            self._reader.join(_LAST_WORDS)
            self._reader = None

    def _start_child(self, command: list[str], log: Path, printed: int | None = None) -> subprocess.Popen[bytes]:
        """Start a child whose output goes to the file *log*: a pipe that is not read would block the child.

        *printed*: the file descriptor for its standard output, if that is another one.
        """
        log.write_bytes(b"")
        with log.open("ab") as out:
            child = subprocess.Popen(
                [*_tied(), *command], stdout=out if printed is None else printed, stderr=out,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        return child

    def _pipe(self, printed: Callable[[str], None]) -> int:
        """Return a file descriptor for writing, from which a thread passes the text to *printed*."""
        ours, theirs = os.pipe()
        text = codecs.getincrementaldecoder("utf-8")(errors="replace")

        def read() -> None:
            with open(ours, "rb", buffering=0) as stream:
                while data := stream.read(1 << 12):
                    with contextlib.suppress(RvtraceError):  # the output cannot be written; QEMU continues
                        printed(text.decode(data))

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        return theirs


class Rig(Processes):
    """The simulated target with OpenOCD: `with Rig(elf, folder) as rig:`.

    The program is halted at its entry, and OpenOCD listens on gdb_port and tcl_port. The files (target description,
    OpenOCD configuration, logs) are written to *folder*. *printed*: called with what the program prints, and with how
    it ended, on another thread. Raises RigError.

    Subclasses may set `openocd_commands`, which OpenOCD executes after its configuration.
    """

    openocd_commands = "init; halt"

    def __init__(
        self,
        elf: str | os.PathLike[str],
        folder: str | os.PathLike[str],
        *sim_options: str,
        printed: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(elf, folder)
        self.openocd_log = self.folder / "openocd.log"
        self._sim_options = sim_options
        self._printed = printed

    def start(self) -> None:
        """Start the simulated target and OpenOCD. Raises RigError."""
        self.start_simulator()
        self.start_openocd()

    def start_simulator(self) -> None:
        """Start `rvtrace sim` on a unix socket in the folder and wait until it listens."""
        configuration = self.folder / "openocd.cfg"
        log = self.folder / "sim.log"
        command = [PYTHON, "-m", "rvtrace_gdb", "sim", "--elf", str(self.elf)]
        command += ["--unix", str(self.folder / "jtag.sock"), "--write-target", str(self.target_file)]
        command += ["--write-openocd", str(configuration), "--tcl-port", str(self.tcl_port)]
        command += ["--gdb-port", str(self.gdb_port), *self._sim_options]
        if self._printed is None:
            self.simulator = self._start_child(command, log)
        else:
            theirs = self._pipe(_ProgramOutput(log, self._printed))
            try:
                self.simulator = self._start_child(command, log, theirs)
            finally:
                os.close(theirs)
        wait_until(self.simulator, "the simulated target", log, lambda: _LISTENS in log.read_bytes())

    def start_openocd(self) -> None:
        """Start the real openocd, or start it again, and wait until it serves gdb and Tcl. Raises RigError."""
        openocd = shutil.which("openocd")
        if openocd is None:
            raise RigError("openocd is not installed", "apt install openocd")
        command = [openocd, "-f", str(self.folder / "openocd.cfg")]
        command += ["-c", self.openocd_commands]
        self.openocd = self._start_child(command, self.openocd_log)
        # The gdb port is opened by `init`; the Tcl port is opened last, after all commands.
        ready = f"Listening on port {self.tcl_port} for tcl".encode()
        wait_until(self.openocd, "openocd", self.openocd_log, lambda: ready in self.openocd_log.read_bytes())


def _tied() -> list[str]:
    """Return a prefix of a command (Linux) that ends it with this process, even if this process is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def _end_child(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(ENDING_SECONDS)
    finally:
        child.kill()
        child.wait()


def listens(port: int) -> bool:
    """Whether a local TCP port is listened on, without connecting: OpenOCD takes a connection for a gdb."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as file:
            if any(f[1].endswith(wanted) and f[3] == "0A" for f in (line.split() for line in file) if len(f) > 3):
                return True
    return False


def wait_until(child: subprocess.Popen[bytes], what: str, log: Path, ready: Callable[[], bool]) -> None:
    """Wait until a child is *ready*. Raises RigError, with the last line of its *log*."""
    deadline = time.monotonic() + STARTUP_SECONDS
    while not ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise RigError(f"{what} did not start", log.read_text(errors="replace"))
        time.sleep(0.02)


_CHOSEN = {
    "-gdb": "rvtrace chooses the port",
    "-s": "rvtrace chooses the port",
    "-S": "QEMU waits for gdb anyway",
    "-d": "the recorder uses the log",
    "-D": "the recorder uses the log",
    "-daemonize": "QEMU ends with the command that started it",
}
"""Options of QEMU that the user must not give, with the reasons."""
_USUAL = (
    (("-M", "-machine"), ("-M", "virt")),
    (("-bios",), ("-bios", "none")),
    (("-display", "-nographic"), ("-display", "none")),
    (("-serial", "-nographic"), ("-serial", "stdio")),
    (("-icount", "-accel", "-smp"), ("-icount", "shift=7,sleep=off")),  # 128 ns an instruction
)
"""Default options: if none of the names is given, the words are added."""
_ERROR = re.compile(r"\S*(qemu-system-|rvtrace)[^ :]*: ")
_LAST_WORDS = 5.0  # seconds to read what was printed before the end


_LISTENS = b"listening on"


class _ProgramOutput:
    """What the program on the simulated target prints: all that follows the line that the target listens.

    Everything goes to the end of the target's *log*.
    """

    def __init__(self, log: Path, printed: Callable[[str], None]) -> None:
        self._log, self._printed = log, printed
        self._before: str | None = ""

    def __call__(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(text)
        if self._before is not None:
            self._before += text
            _, _, rest = self._before.partition(_LISTENS.decode())
            if "\n" not in rest:
                return
            text, self._before = rest.partition("\n")[2], None
        if text:
            self._printed(text)


class QemuRig(Processes):
    """QEMU with the program at reset, waiting for gdb at gdb_port: `with QemuRig(elf, folder, "-smp 2") as rig:`.

    *options*: those of QEMU in one text, as for a shell; they may begin with its program. `machine` adds defaults.
    *printed*: called with a line that says where the trace comes from, then with what the program prints, on another
    thread. *source*: that line. Raises RigError, RvtraceError.
    """

    source = ""

    def __init__(
        self, elf: str | os.PathLike[str], folder: str | os.PathLike[str], options: str = "",
        printed: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(elf, folder)
        self._words = machine(self.elf, options)
        self._printed = printed

    def start(self) -> None:
        """Start QEMU with its recorder, and wait until it listens. Raises RigError."""
        log = self.folder / "qemu.log"
        command = [PYTHON, "-m", "rvtrace_gdb", "qemu", "--write-target", str(self.target_file)]
        command += ["--", *self._words, "-S", "-gdb", f"tcp:127.0.0.1:{self.gdb_port}"]
        theirs = None if self._printed is None else self._pipe(self._printed)
        try:
            qemu = self._start_child(command, log, theirs)
        finally:
            if theirs is not None:
                os.close(theirs)
        try:
            wait_until(qemu, "QEMU", log, lambda: self.target_file.exists() and listens(self.gdb_port))
        except RigError as error:
            raise RigError("QEMU did not start", _complaint(error.log)) from None
        from rvtrace_gdb.session.sources.qemu.run import FROM_LOG  # only here: it brings all of the recorder

        slow = [line for line in log.read_text(errors="replace").splitlines() if line.endswith(FROM_LOG)]
        self.source = slow[0] if slow else "rvtrace qemu: what runs is recorded by a plugin in QEMU"
        if self._printed is not None:
            self._printed(f"{self.source}\n")


def _complaint(log: str) -> str:
    """Return the line with the error from a log; advice may follow it."""
    lines = [line for line in log.splitlines() if _ERROR.match(line)]
    return lines[-1] if lines else log


def machine(elf: Path, options: str) -> list[str]:
    """Return QEMU's arguments: the user's, with the defaults `-M virt -bios none -kernel ELF -display none`.

    The program's output goes to standard output; the clock of a single hart counts instructions, so that all runs are
    equal. Raises RvtraceError for options that must not be given here.
    """
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise RvtraceError(f"--qemu {options}: {str(error).lower()}") from None
    named = 1 if words and "qemu-system" in Path(words[0]).name else 0
    said = {"-" + word.lstrip("-") for word in words[named:] if word.startswith("-")}
    for word in said & _CHOSEN.keys():
        raise RvtraceError(f"--qemu: {word} cannot be given here: {_CHOSEN[word]}")
    if words[named:] and not words[named].startswith("-"):
        raise RvtraceError(f"--qemu {options}: expected arguments of QEMU, as in --qemu '-M virt -smp 2'")
    firmware = "-bios" in said and words[_behind(words, "-bios") : _behind(words, "-bios") + 1] != ["none"]
    if firmware:
        said.add("-kernel")  # it may be the program itself
    missing = [word for names, wanted in _USUAL if not said & set(names) for word in wanted]
    kernel = [] if "-kernel" in said else ["-kernel", str(elf)]
    return [*words[:named], *missing, *kernel, *words[named:]]


def _behind(words: Sequence[str], option: str) -> int:
    return max(at for at, word in enumerate(words) if "-" + word.lstrip("-") == option) + 1


_QEMU = "--qemu"


@dataclass(frozen=True)
class TargetRequest:
    """The program, the target and the gdb that the command line names. *target*: the description. *connect*: where
    OpenOCD or QEMU waits. *sim*, *qemu*: a target is started; *qemu* are its arguments, None: it is not that.
    """

    elf: Path | None
    target: Path | None
    connect: str
    sim: bool
    tandem: bool
    qemu: str | None
    gdb: str | None

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "TargetRequest":
        """Return what a command with the options of `add_target_options` says."""
        return cls(
            elf=args.elf, target=args.target, connect=args.connect, sim=args.sim, tandem=args.tandem, qemu=args.qemu,
            gdb=args.gdb,
        )  # fmt: skip


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the program, the target, and gdb."""
    moved = "the program; with OFFSET, so many bytes above the addresses it was linked for"
    parser.add_argument("--elf", type=Path, metavar="FILE[@OFFSET]", help=moved)
    parser.add_argument(
        "--target", type=Path, metavar="FILE|NAME",
        help="the target description (TOML), or a shipped one (`rvtrace targets`); with --sim what is simulated",
    )  # fmt: skip
    parser.add_argument("--connect", default="", metavar="HOST:PORT", help="where OpenOCD or QEMU waits for gdb")
    parser.add_argument("--sim", action="store_true", help="start a simulated target and use it (needs openocd)")
    parser.add_argument(
        "--tandem", action="store_true",
        help="with --sim: `trace start` reads a tandem trace, which also has registers and memory of the past",
    )  # fmt: skip
    parser.add_argument(
        _QEMU, nargs="?", const="", metavar="ARGUMENTS",
        help="start QEMU and use it: its `virt` machine, or as ARGUMENTS (one word) of QEMU say",
    )  # fmt: skip
    parser.add_argument("--gdb", metavar="GDB", help="the gdb to use (default: $RVTRACE_GDB, or one that is installed)")
    parser.prepare = _qemu_with_arguments  # type: ignore[attr-defined]


def _qemu_with_arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Take the word after --qemu for QEMU's arguments if it looks like these, not like a script or our options."""
    if not isinstance(words, list):
        return
    for at, word in enumerate(words):
        if word == _QEMU:
            theirs = words[at + 1 : at + 2]
            if theirs and _of_qemu(parser, theirs[0]):
                del words[at + 1]
                words[at] = f"{_QEMU}={theirs[0]}"
            else:
                words[at] = f"{_QEMU}="


def _of_qemu(parser: argparse.ArgumentParser, word: str) -> bool:
    ours = {option for action in parser._actions for option in action.option_strings}
    first = word.split()[0] if word.split() else ""
    return "qemu-system" in first or (word.startswith("-") and (" " in word or word.partition("=")[0] not in ours))


@contextlib.contextmanager
def target_of(
    request: TargetRequest, printed: Callable[[str], None] | None = None
) -> Iterator[tuple[Path | None, str]]:
    """Yield the target description and where to connect: those that were named, or of a target started for this.

    *printed*: called with what the program on it prints, on another thread.
    """
    if request.tandem and not request.sim:
        raise RvtraceError("--tandem: the simulated target of --sim has a tandem trace")
    if not request.sim and request.qemu is None:
        yield request.target, request.connect
        return
    option = "--sim" if request.sim else _QEMU
    if request.sim and request.qemu is not None:
        raise RvtraceError(f"--sim, {_QEMU}: give only one of them")
    if request.elf is None or request.connect or (request.target is not None and not request.sim):
        refused = "no --connect" if request.sim else "neither --target nor --connect"
        raise RvtraceError(f"{option}: needs --elf, and takes {refused}")
    if is_pipe(request.elf):
        raise RvtraceError(pipe_refused(request.elf, "gdb"))
    if not request.elf.is_file():
        raise RvtraceError(f"{request.elf}: {'is a folder' if request.elf.is_dir() else 'there is no such file'}")
    with tempfile.TemporaryDirectory(prefix="rvtrace-") as name:
        elf, folder = request.elf.resolve(), Path(name)
        tandem = ["--tandem", str(folder / "tandem.tvt")] if request.tandem else []
        built = [] if request.target is None else ["--target", str(request.target)]
        rig: Processes = (
            Rig(elf, folder, *built, *tandem, printed=printed)
            if request.sim
            else QemuRig(elf, folder, request.qemu or "", printed)
        )
        with rig:
            yield rig.target_file, f"localhost:{rig.gdb_port}"
