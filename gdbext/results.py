"""What commands print, as fields for programs: `rvtrace console --json` asks for them after each command.

The names are those of the MI commands (docs/ide.md). Nothing is kept unless the console wants it.
"""

from __future__ import annotations

import os
from typing import Any, Callable

WANTED = os.environ.get("RVTRACE_RESULTS") == "1"
"""Whether a program asks for fields."""
makers: dict[str, Callable[..., dict[str, Any]]] = {}
"""Functions of `gdbext.mi` that make fields: "page" of a piece of a list, "writer" and "parts" of the answers to
who-wrote, "intervals" of that to intervals, "diff" of that to diff."""
_found: dict[str, Any] = {}


def add(fields: dict[str, Any]) -> None:
    """Keep fields of what is printed. Lists of one name are continued; of other fields the last one counts."""
    if not WANTED:
        return
    for name, value in fields.items():
        if isinstance(value, list) and isinstance(_found.get(name), list):
            _found[name].extend(value)
        else:
            _found[name] = list(value) if isinstance(value, list) else value


def take() -> dict[str, Any]:
    """Return the fields since the last call."""
    found = dict(_found)
    _found.clear()
    return found
