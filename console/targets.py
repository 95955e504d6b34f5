"""The options with which `rvtrace console` and `rvtrace run` are told what to connect to."""

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from console.rig import Rig
from support.errors import RvtraceError


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Which program, on which target, and with which gdb."""
    parser.add_argument("--elf", type=Path, metavar="FILE", help="the program")
    parser.add_argument("--target", type=Path, metavar="FILE", help="the target description (TOML)")
    parser.add_argument("--connect", default="", metavar="HOST:PORT", help="where OpenOCD or QEMU waits for gdb")
    parser.add_argument("--sim", action="store_true", help="on a simulated target, started for this (needs openocd)")
    parser.add_argument("--gdb", metavar="GDB", help="the gdb to use ($RVTRACE_GDB, else one that is installed)")


@contextlib.contextmanager
def target_of(arguments: argparse.Namespace) -> Iterator[tuple[Path | None, str]]:
    """The target description, and where to connect: those that were named, or of a simulated target."""
    if not arguments.sim:
        yield arguments.target, arguments.connect
        return
    if arguments.elf is None or arguments.target is not None or arguments.connect:
        raise RvtraceError("--sim: needs --elf, and has a target description and a port of its own")
    if not arguments.elf.is_file():
        raise RvtraceError(f"{arguments.elf}: there is no such file")
    with tempfile.TemporaryDirectory(prefix="rvtrace-") as folder, Rig(arguments.elf.resolve(), Path(folder)) as rig:
        yield rig.target_file, f"localhost:{rig.gdb_port}"
