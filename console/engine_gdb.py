"""Which gdb is driven, with which environment, and what is wrong with one that cannot be."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import rvtrace_gdb
from rvtrace_gdb.console.mi import GdbGone

NAMES = ("gdb-multiarch", "riscv64-unknown-elf-gdb", "riscv32-unknown-elf-gdb", "riscv-none-elf-gdb", "gdb")
"""Programs that are looked for, the first that is there is taken."""
RVTRACE = Path(rvtrace_gdb.__file__).resolve().parent.parent / "rvtrace.py"
"""What gdb has to source."""


def find(named: str | None = None) -> str:
    """The gdb to start: the one that is named, $RVTRACE_GDB, or the first that is installed. Raises `GdbGone`."""
    wanted = named or os.environ.get("RVTRACE_GDB")
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise GdbGone(f"{wanted}: there is no such program; --gdb names the gdb to use")
        return found
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise GdbGone(f"no gdb is installed ({', '.join(NAMES)}): apt install gdb-multiarch, or name yours with --gdb")


def environ(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Of gdb: it draws nothing on a terminal it does not have, and progress is told in numbers (see `console.mi`)."""
    return {**given, "TERM": "dumb", "RVTRACE_PROGRESS": "plain"}


def unusable(gdb: str, why: str) -> GdbGone:
    """What to say of a gdb that could not load rvtrace. *why*: what it said."""
    lines = [line for line in why.strip().splitlines() if line.strip()]
    said = lines[-1].strip() if lines else "it did not say why"
    if "Python scripting is not supported" in why or "was not built with" in why:
        return GdbGone(f"{gdb} was built without Python: use gdb-multiarch, or name another with --gdb")
    if not lines:
        return GdbGone(f"{gdb} is too old: 12 is the first that has machine interface commands in Python")
    return GdbGone(f"{gdb} cannot load {RVTRACE.name}: {said}")
