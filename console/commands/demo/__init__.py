"""`rvtrace demo`: a C program on the simulated target, the real OpenOCD and the real gdb with rvtrace.py sourced.

It prints a short session as the user would see it; with --interactive the user goes on at its gdb prompt. The program
was compiled before (scripts/demo.py), so that nobody needs a compiler to look.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.doctor.finding import this_system
from rvtrace_gdb.console.commands.doctor.gdbs import PACKAGES
from rvtrace_gdb.console.commands.doctor.programs import OPENOCD
from rvtrace_gdb.console.gdb_driver.mi import GDB_NAMES, RVTRACE, find_gdb
from rvtrace_gdb.support.errors import RvtraceError

PROGRAM = Path(__file__).with_name("program")
"""The folder with the program and its sources."""
ELF = "demo.elf"
SESSION = (
    "source {rvtrace}",
    "trace connect :{port}",
    "trace start",
    "break finish",
    "continue",
    "trace history",
    "trace history /s -",
    "trace status",
    "reverse-step",
    "trace goto fib",
    "backtrace",
    "reverse-finish",
    "trace live",
    "trace who-wrote ticks",
    "trace goto -wrote ticks",
    "print ticks",
    "backtrace",
    "trace live",
)
NEXT = """
Go on:
  rvtrace demo --interactive     # the same, and then gdb's prompt is yours
  rvtrace demo -o demo           # the same, and the program stays in the folder demo:
  rvtrace console --elf demo/demo.elf --sim     # completion, a status line (extra `console`)
  rvtrace doctor                 # what is here for a target of your own
"""
EXAMPLES = (
    ("demo", "a session from the first command to who changed a variable"),
    ("demo --interactive", "the same, then you type"),
)


class DemoError(RvtraceError):
    """The demo cannot be shown."""


@dataclass(frozen=True)
class DemoRequest:
    """What the command line asks for. *folder*: where the program is kept; None: nowhere. *gdb*: None: the usual."""

    is_interactive: bool
    folder: Path | None
    gdb: str | None

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "DemoRequest":
        """Return what the command line says."""
        return cls(args.interactive, args.output, args.gdb)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace demo`."""
    parser.description = (
        "Shows what rvtrace does: a program is traced on the simulated target, behind the real OpenOCD, and gdb goes"
        " back in it. It needs gdb and OpenOCD, no hardware and no compiler."
    )
    parser.add_argument("--interactive", action="store_true", help="stay at gdb's prompt when the session is over")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="keep the program, its sources and the logs in this folder"
    )
    parser.add_argument("--gdb", metavar="GDB", help="the gdb to use (default: $RVTRACE_GDB, or one that is installed)")
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the session. Raises RvtraceError."""
    request = DemoRequest.from_arguments(args)
    _check_programs(request.gdb)
    gdb = find_gdb(request.gdb)
    with _folder(request.folder) as folder:
        status = _show(gdb, folder, is_interactive=request.is_interactive)
    if request.is_interactive:
        return status
    if status:
        raise DemoError(f"{gdb} ended with status {status}: `rvtrace doctor gdb` says whether it can be used")
    print(NEXT, end="", flush=True)
    return 0


def _check_programs(gdb: str | None) -> None:
    """Raise DemoError if gdb or OpenOCD is not there, with what installs them."""
    missing = []
    if gdb is None and not os.environ.get("RVTRACE_GDB") and not any(map(shutil.which, GDB_NAMES)):
        missing.append(("gdb", PACKAGES))
    if not any(map(shutil.which, OPENOCD.commands)):
        missing.append((OPENOCD.name, OPENOCD.packages))
    if not missing:
        return
    names = " and ".join(name for name, _ in missing)
    debian = "apt install " + " ".join(packages.debian for _, packages in missing)
    fedora = "dnf install " + " ".join(packages.fedora for _, packages in missing)
    both = {"debian": debian, "fedora": fedora}.get(this_system(), f"{debian}, or {fedora}")
    raise DemoError(f"the demo needs {names}: {both}")


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Yield a folder with the program: *kept*, or a temporary one. Raises DemoError."""
    with contextlib.ExitStack() as temporary:
        name = kept or temporary.enter_context(tempfile.TemporaryDirectory(prefix="rvtrace-demo-"))
        folder = Path(name).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in PROGRAM.iterdir():
                shutil.copyfile(file, folder / file.name)
        except OSError as error:
            raise DemoError(f"{error.filename or folder}: {error.strerror}") from None
        yield folder


def _show(gdb: str, folder: Path, *, is_interactive: bool) -> int:
    """Run the session, and return gdb's exit status."""
    environ = {name: value for name, value in os.environ.items() if name != "RVTRACE_TARGET"}
    with Rig(folder / ELF, folder) as rig:
        words = [gdb, "-q", "-nx", str(folder / ELF), "-ex", f"directory {folder}", "-x", str(_script(rig))]
        if is_interactive:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is gdb's
            return subprocess.run(words, env=environ, check=False).returncode
        sys.stdout.flush()
        return subprocess.run([*words, "-batch"], env=environ, stdin=subprocess.DEVNULL, check=False).returncode


def _script(rig: Rig) -> Path:
    """Write a file of gdb commands that shows each command of the session before it runs."""
    lines = ["set pagination off", "set confirm off", "set height 0"]
    for template in SESSION:
        command = template.format(port=rig.gdb_port, rvtrace=RVTRACE)
        lines += [f"echo (gdb) {command}\\n", command]
    script = rig.folder / "session.gdb"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return script
