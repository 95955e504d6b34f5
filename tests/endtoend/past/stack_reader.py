"""Runs inside gdb: goes to places in the past, and writes down the stack and the registers that gdb shows there.

$STACK_ASKED: a JSON list of numbers. $STACK_RESULT: gets {number: [[function, sp], ...], registers: {name: value}},
with null for what is unavailable.
"""

from __future__ import annotations

import json
import os

import gdb

_NAMES = ["ra", "sp", "gp", "tp", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "s2", "s3", "pc"]


def _register(frame: gdb.Frame, name: str) -> int | None:
    value = frame.read_register(name)
    if value.is_optimized_out:
        return None
    text = value.format_string(format="z")
    return None if "unavailable" in text else int(text, 16)


with open(os.environ["STACK_ASKED"], encoding="utf-8") as source:
    asked = json.load(source)
found: dict[int, dict[str, object]] = {}
for number in asked:
    gdb.execute(f"trace goto {number}", to_string=True)
    stack = []
    newest = gdb.newest_frame()
    registers = {name: _register(newest, name) for name in _NAMES}
    frame: gdb.Frame | None = newest
    while frame is not None:
        stack.append((frame.name(), frame.pc()))
        frame = frame.older()
    found[number] = {"stack": stack, "registers": registers, "full": gdb.execute("backtrace full", to_string=True)}
with open(os.environ["STACK_RESULT"], "w", encoding="utf-8") as result:
    json.dump(found, result)
