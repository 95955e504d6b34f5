"""Runs inside gdb: goes to places in the past, and writes down what gdb says there.

$STATE_ASKED: a JSON file, {numbers, registers, memory: addresses}. $STATE_RESULT: gets {number: {registers: {name:
value}, memory: {address: byte}}}, with null for what gdb calls unavailable or cannot access.
"""

from __future__ import annotations

import json
import os

import gdb


def _register(name: str) -> int | None:
    value = gdb.selected_frame().read_register(name)
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_UNION:  # a floating-point register
        value = value["double" if "double" in {field.name for field in kind.fields()} else "float"]
    elif kind.code == gdb.TYPE_CODE_STRUCT or kind.code == gdb.TYPE_CODE_FLAGS:
        value = value.cast(gdb.lookup_type("unsigned long"))
    text = value.format_string(format="z")
    return None if "unavailable" in text else int(text, 16)


def _byte(address: int) -> int | None:
    try:
        return gdb.selected_inferior().read_memory(address, 1).tobytes()[0]
    except gdb.MemoryError:
        return None


with open(os.environ["STATE_ASKED"], encoding="utf-8") as source:
    asked = json.load(source)
found = {}
for number in asked["numbers"]:
    gdb.execute(f"trace goto {number}", to_string=True)
    registers = {name: _register(name) for name in asked["registers"]}
    found[number] = {"registers": registers, "memory": {address: _byte(address) for address in asked["memory"]}}
with open(os.environ["STATE_RESULT"], "w", encoding="utf-8") as result:
    json.dump(found, result)
