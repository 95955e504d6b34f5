"""The records of gdb's machine interface, taken apart by pygdbmi's parser, and those lines that it does not know.

Source: "GDB/MI Output Syntax" and "-target-download" in gdb's manual.
"""

import re
import shlex
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from rvtrace_gdb.support.errors import RvtraceError

_STATUS = re.compile(r"^\d*\+(\S+?),\{(.*)\}\s*$")
"""Asynchronous status records, `+download,{...}`: pygdbmi takes them for output of the program."""
_FIELD = re.compile(r'([a-z-]+)="((?:[^"\\]|\\.)*)"')
_PROMPT = re.compile(r"^\(gdb\)\s*$")


class MissingLibrary(RvtraceError):
    """A library that only the console and scripts need is not installed; *name*: which."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed: {shlex.quote(sys.executable)} -m pip install {name}")
        self.name = name


class Record(NamedTuple):
    """A record of gdb.

    *kind*: result (`^`), notify (`*`, `=`), status (`+`); console (`~`), target (`@`), log (`&`), output (anything
    else), which have text. *name*: of results done, running, connected, error, exit; of the others what happened.
    """

    kind: str
    name: str
    fields: dict[str, Any]
    text: str
    token: int | None


def parser() -> Callable[[str], Record | None]:
    """What takes a line apart; None for a prompt. Raises `MissingLibrary`."""
    try:
        from pygdbmi.gdbmiparser import parse_response
    except ImportError:
        raise MissingLibrary("pygdbmi") from None

    def parse(line: str) -> Record | None:
        if _PROMPT.match(line):
            return None
        status = _STATUS.match(line)
        if status is not None:
            return Record("status", status[1], dict(_FIELD.findall(status[2])), "", None)
        found = parse_response(line)
        payload = found["payload"]
        fields = payload if isinstance(payload, dict) else {}
        text = payload if isinstance(payload, str) else ""
        if found["type"] == "output":
            text += "\n"
        return Record(found["type"], found["message"] or "", fields, text, found.get("token"))

    return parse


def quoted(text: str) -> str:
    """A parameter of an MI command, as a C string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
