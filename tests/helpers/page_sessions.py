"""The gdb sessions that a page of docs/ shows: what is typed and what gdb prints, to be compared with the real gdb."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.helpers.cross_compiler import EXAMPLES, HOME

_INDENT, _GDB = "    ", "(gdb) "
_BLOCK = re.compile(r"(?:^    .*\n(?:\n(?=    (?!\((?:gdb|lldb)\) |\$ )))?)+", re.M)
_FOLDER = re.compile(re.escape(str(EXAMPLES)) + r"/(?:[\w-]+/)*")


class Exchange(NamedTuple):
    """A command, and the lines that gdb prints. A command that comes again has a space behind it for each time before,
    as `run_gdb` needs it.
    """

    command: str
    lines: list[str]


def sessions(page: str, prompt: str = _GDB) -> list[list[Exchange]]:
    """The sessions of `docs/PAGE`: blocks of indented lines that begin with the debugger's prompt."""
    text = (HOME / "docs" / page).read_text(encoding="utf-8")
    return [_session(block, prompt) for block in _blocks(text) if block[0].startswith(prompt)]


def _blocks(text: str) -> Iterator[list[str]]:
    """Indented lines; what is printed may have empty ones in between."""
    for block in _BLOCK.findall(text):
        yield [line.removeprefix(_INDENT) for line in block.splitlines() if line]


def _session(block: list[str], prompt: str) -> list[Exchange]:
    """What follows two spaces and `#` is a remark on a command."""
    found: list[Exchange] = []
    for line in block:
        if line.startswith(prompt):
            command = line.removeprefix(prompt).partition("  #")[0].rstrip()
            before = sum(known.command.rstrip() == command for known in found)
            found.append(Exchange(command + " " * before, []))
        else:
            found[-1].lines.append(line)
    return found


def shown(printed: str, folder: Path | None = None) -> list[str]:
    """The lines that gdb printed, without empty ones and what OpenOCD says, sources by their names.

    *folder*: one whose files are shown by their names, too.
    """
    text = _FOLDER.sub("", printed)
    if folder is not None:
        text = text.replace(f"{folder}/", "")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("[sim.cpu")]
