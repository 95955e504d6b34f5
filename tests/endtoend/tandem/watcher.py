"""Runs inside gdb: what watchpoints stop at.

$WATCHED: a file of commands, one a line. `forward` and `backward` stand for `continue` and `reverse-continue` until gdb
is at the end, or before $FIRST. Printed is each command that was executed, between \\x06 and \\x03, what gdb said,
and, between \\x04 and \\x05, the number it came to.
"""

from __future__ import annotations

import os

import gdb

_AT_MOST = 500


def _number() -> int:
    try:
        return int(gdb.newest_frame().read_register("trace_pos"))
    except (gdb.error, ValueError):
        return 0


def _do(command: str) -> int:
    gdb.write(f"\x06{command}\x03\n")
    try:
        gdb.execute(command)
    except gdb.error as problem:
        gdb.write(f"{problem}\n")
    number = _number()
    gdb.write(f"\x04{number}\x05\n")
    return number


def _execute(command: str, first: int) -> None:
    often = {"forward": "continue", "backward": "reverse-continue"}.get(command)
    if often is None:
        _do(command)
        return
    for _ in range(_AT_MOST):
        if _do(often) in (*range(first), end):
            return


end = _number()
with open(os.environ["WATCHED"], encoding="utf-8") as source:
    wanted = source.read().splitlines()
for each in wanted:
    _execute(each, int(os.environ["FIRST"]))
