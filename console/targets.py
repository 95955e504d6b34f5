"""The options with which `rvtrace console` and `rvtrace run` are told what to connect to."""

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rvtrace_gdb.console.rig import Processes, Rig
from rvtrace_gdb.console.rig_qemu import QemuRig
from rvtrace_gdb.support.errors import RvtraceError

_QEMU = "--qemu"


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Which program, on which target, and with which gdb."""
    parser.add_argument("--elf", type=Path, metavar="FILE", help="the program")
    parser.add_argument("--target", type=Path, metavar="FILE", help="the target description (TOML)")
    parser.add_argument("--connect", default="", metavar="HOST:PORT", help="where OpenOCD or QEMU waits for gdb")
    parser.add_argument("--sim", action="store_true", help="on a simulated target, started for this (needs openocd)")
    parser.add_argument(
        "--tandem", action="store_true",
        help="of --sim: `trace start` reads a tandem trace, which has registers and memory of the past, too",
    )  # fmt: skip
    parser.add_argument(
        _QEMU, nargs="?", const="", metavar="ARGUMENTS",
        help="on QEMU, started for this: on its `virt` machine, or as its arguments say, which are one word",
    )  # fmt: skip
    parser.add_argument("--gdb", metavar="GDB", help="the gdb to use ($RVTRACE_GDB, else one that is installed)")
    parser.prepare = _qemu_with_arguments  # type: ignore[attr-defined]


def _qemu_with_arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """What is behind --qemu is QEMU's if it looks like that, and neither a script nor an option of ours."""
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
    arguments: argparse.Namespace, printed: Callable[[str], None] | None = None
) -> Iterator[tuple[Path | None, str]]:
    """The target description, and where to connect: those that were named, or of a target started for this.

    *printed*: gets what the program on QEMU prints, on another thread.
    """
    if arguments.tandem and not arguments.sim:
        raise RvtraceError("--tandem: the simulated target of --sim has a tandem trace")
    if not arguments.sim and arguments.qemu is None:
        yield arguments.target, arguments.connect
        return
    option = "--sim" if arguments.sim else _QEMU
    if arguments.sim and arguments.qemu is not None:
        raise RvtraceError(f"--sim, {_QEMU}: one of them")
    if arguments.elf is None or arguments.target is not None or arguments.connect:
        raise RvtraceError(f"{option}: needs --elf, and has a target description and a port of its own")
    if not arguments.elf.is_file():
        raise RvtraceError(f"{arguments.elf}: {'is a folder' if arguments.elf.is_dir() else 'there is no such file'}")
    with tempfile.TemporaryDirectory(prefix="rvtrace-") as name:
        elf, folder = arguments.elf.resolve(), Path(name)
        tandem = ["--tandem", str(folder / "tandem.tvt")] if arguments.tandem else []
        rig: Processes = Rig(elf, folder, *tandem) if arguments.sim else QemuRig(elf, folder, arguments.qemu, printed)
        with rig:
            yield rig.target_file, f"localhost:{rig.gdb_port}"
