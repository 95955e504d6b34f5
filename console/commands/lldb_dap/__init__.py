"""`rvtrace lldb-dap`: lldb-dap with step back and reverse continue, which it lacks.

Editors start it in the place of lldb-dap. It starts the real one and passes messages of the Debug Adapter Protocol on:
`relay.py` between two programs, `messages.py` cuts the bytes, `translation.py` has what is changed on the way.
"""

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.lldb_dap.relay import relay
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable

NAME = "lldb-dap"
_NUMBERED = re.compile(rf"{NAME}-(\d+)")
EXAMPLES = (
    ("lldb-dap", "what an editor starts in the place of lldb-dap"),
    ("lldb-dap --program /usr/lib/llvm-22/bin/lldb-dap", "with this lldb-dap"),
)


class NoAdapter(RvtraceError):
    """There is no lldb-dap, or it cannot be started."""


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace lldb-dap`."""
    parser.usage = "%(prog)s [options] [-- LLDB-DAP-ARGUMENTS]"
    parser.description = (
        "What an editor starts in the place of lldb-dap: passes the messages of the Debug Adapter Protocol, on standard"
        " input and output, on to lldb-dap and back, and adds what it lacks: step back, by lines or instructions, and"
        " reverse continue. LLDB has to import rvtrace_lldb.py (`postRunCommands`), see docs/lldb.md. Ends with"
        " lldb-dap, and with its exit status."
    )
    parser.add_argument(
        "--program", metavar="LLDB-DAP",
        help="the lldb-dap to start (default: lldb-dap of $PATH, or the newest of lldb-dap-22, lldb-dap-23...)",
    )  # fmt: skip
    parser.examples = EXAMPLES
    parser.set_defaults(run=run, arguments=[])
    parser.prepare = _keep_arguments


def _keep_arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Take all words after -- for lldb-dap's arguments."""
    if "--" in words and isinstance(words, list):
        at = words.index("--")
        parser.set_defaults(arguments=words[at + 1 :])
        del words[at:]


def run(args: argparse.Namespace) -> int:
    """Run lldb-dap to its end; returns its status. Raises NoAdapter."""
    program = args.program or _installed()
    try:
        adapter = subprocess.Popen([program, *args.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise NoAdapter(f"{printable(program)} cannot be started: {error.strerror}") from None
    with adapter:
        return relay(adapter)


def _installed() -> str:
    """Return the lldb-dap that $PATH leads to. Raises NoAdapter."""
    names = {name for folder in os.get_exec_path() for name in _adapters_in(Path(folder))}
    numbered = sorted(names, key=lambda name: int(name.rpartition("-")[2]), reverse=True)
    found = next(filter(None, map(shutil.which, (NAME, *numbered))), None)
    if found is None:
        raise NoAdapter(f"there is no {NAME} in $PATH: --program names one; Debian has it in the package lldb-NN")
    return found


def _adapters_in(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if _NUMBERED.fullmatch(name)]
    except OSError:
        return []
