"""`gotoTargets` and `goto` of the Debug Adapter Protocol: to where a line of the source ran, before here or after.

Debuggers without a past set the pc there instead, which changes what the program does. Here nothing is changed.
"""

from __future__ import annotations

import os
from typing import Any

import gdb

from rvtrace_gdb.gdbext.dap.server import Body, DapResumption, DapServer
from rvtrace_gdb.gdbext.location import decode
from rvtrace_gdb.gdbext.mi import commands as mi
from rvtrace_gdb.gdbext.replay import position

_FIND = next(command for command in mi.TABLE if command.name == "find")


def add(server: DapServer) -> None:
    """Add the requests to a server. A target's number is that of its instruction in the history."""
    resumption = DapResumption(server)
    lines = server.module("server")
    imported, exported = lines.import_line, lines.export_line

    def goto_targets(*, source: Any, line: int, **others: Any) -> Body:
        path = source.get("path") or source.get("name") or ""
        return {"targets": [{**it, "line": exported(it["line"])} for it in _targets(path, imported(line))]}

    def goto(*, threadId: int, targetId: int, **others: Any) -> None:
        if position.number() == targetId:
            resumption.stay(threadId, "goto")
        else:
            resumption.run(threadId, f"trace goto {int(targetId)}", "goto")

    server.add("gotoTargets", goto_targets)
    server.add("goto", goto, response=False)
    server.declare("supportsGotoTargetsRequest")


def _targets(path: str, line: int) -> list[Body]:
    """Return where a line ran last before here, and where it runs next.

    Raises gdb.GdbError if it did not run, gdb.error if it has no code.
    """
    name = f"{os.path.basename(path)}:{line}"
    location = f"'{path}':{line}"
    decode(location)  # what is wrong with it, in gdb's words
    length = int(_executions(location, 0)["length"])
    here = position.number()
    found: list[Body] = []
    if here is None:
        before, after = length, length + 1
    else:
        after = int(_executions(location, 1, "--from", str(here))["begin"]) if length else 1
        before = after - 1
    for number, words in ((before, "ran last before here"), (after, "runs next")):
        row = _execution(location, number) if 1 <= number <= length else None
        if row is not None and row["position"] == here:
            row = _execution(location, number + 1) if number < length else None
        if row is not None:
            found.append(_target(row, words, line))
    if not found:
        raise gdb.GdbError(f"{name} did not run in what is traced.")
    return found


def _target(row: Body, words: str, line: int) -> Body:
    number = int(row["position"])
    place = {"instructionPointerReference": row["addr"]} if "addr" in row else {}
    return {"id": number, "label": f"{words}: instruction {number}", "line": int(row.get("line", line)), **place}


def _execution(location: str, number: int) -> Body | None:
    rows = _executions(location, 1, "--begin", str(number))["executions"]
    return rows[0] if rows and "position" in rows[0] else None


def _executions(location: str, count: int, *options: str) -> Body:
    return dict(_FIND.run(["--count", str(count), *options, "--", location]))
