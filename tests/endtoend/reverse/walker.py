"""Runs inside gdb: executes commands one after the other and writes down where each led.

$WALK_COMMANDS: a file of commands, one a line. `goto 0.25` stands for `trace goto` a quarter through the history. What
goes forward is left out in the present: the target would run. $WALK_RESULT: gets a line for each command that was
executed: the command, $trace_pos, $pc, and the error if there was one, with tabs between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import gdb


def _place() -> tuple[int, int]:
    try:
        frame = gdb.newest_frame()
        return int(frame.read_register("trace_pos")), int(frame.pc())
    except (gdb.error, ValueError):
        return 0, 0


def _execute(command: str) -> str:
    try:
        gdb.execute(command)
    except gdb.error as problem:
        return " ".join(str(problem).split())
    return ""


def _walk(commands: list[str]) -> Iterator[str]:
    _execute("trace goto end")
    newest = _place()[0]
    for command in commands:
        words = command.split()
        if words[0] == "goto":
            command = f"trace goto {1 + int(float(words[1]) * (newest - 1))}"
        if words[0] in ("stepi", "nexti", "continue", "finish") and not 1 <= _place()[0] <= newest:
            continue
        error = _execute(command)
        number, pc = _place()
        yield f"{command}\t{number}\t{pc:x}\t{error}\n"


with open(os.environ["WALK_COMMANDS"], encoding="utf-8") as source:
    wanted = source.read().splitlines()
with open(os.environ["WALK_RESULT"], "w", encoding="utf-8") as result:
    for line in _walk(wanted):
        result.write(line)
        result.flush()
