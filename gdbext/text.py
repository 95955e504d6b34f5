"""Text that is safe to print: names in a program may contain any character.

A name must neither split a line nor send control characters to the terminal, so these are escaped. This module runs
with and without gdb; `support.text` does the same outside gdb.
"""

from __future__ import annotations

import re
import sys

_COLOUR = re.compile(r"(\x1b\[(?:3[0-7]|1;31)?m|\t)")  # `listing` uses no others
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def printable(text: str) -> str:
    r"""Return a name with its unprintable characters escaped: ESC as \x1b, the end of a line as \n."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def shown(line: str) -> str:
    """Return a line with its unprintable characters escaped, except tabs and colours."""
    if line.isprintable():
        return line
    return "".join(part if i % 2 else printable(part) for i, part in enumerate(_COLOUR.split(line)))


def columns(text: str) -> str:
    """Return a text with its unprintable characters escaped, except tabs."""
    return text if text.isprintable() else "\t".join(map(printable, text.split("\t")))


def counted(number: int, what: str) -> str:
    """Return a number with its noun, "1 cycle", "2 cycles"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def error_line(error: object) -> str:
    """Return what an error says as one line, without the colours that gdb 18 puts into names and numbers."""
    return _STYLE.sub("", " ".join(str(error).splitlines()))


def print_line(line: object) -> None:
    """Print a line, with its unprintable characters escaped so that it stays one line."""
    print(shown(str(line)))


def print_at_stop(line: str) -> None:
    """Print a line about a stop: as `print_line`, but as an event where gdb is a server of the Debug Adapter Protocol.

    That server resumes with gdb's output turned off.
    """
    server = sys.modules.get("gdb.dap.server")
    if server is None or getattr(server, "_server", None) is None:
        print_line(line)
    else:
        server.send_event("output", {"category": "console", "output": f"{shown(line)}\n"})


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8 (surrogateescape)
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
