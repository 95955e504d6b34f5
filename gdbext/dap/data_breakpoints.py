"""Data breakpoints of the Debug Adapter Protocol: gdb's watchpoints, which stop in the past in both directions."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.dap.server import Body, DapServer
from rvtrace_gdb.gdbext.dap.variables import private_attribute
from rvtrace_gdb.gdbext.text import error_line

_CLASSES = {"read": gdb.WP_READ, "write": gdb.WP_WRITE, "readWrite": gdb.WP_ACCESS}
_kept: dict[tuple[str, str], gdb.Breakpoint] = {}
"""The data breakpoints of the client, by what it names them with: data, and kind of access."""


def add(server: DapServer) -> None:
    """Add the requests to a server."""
    variables, evaluate = server.module("varref"), server.module("evaluate")
    find, select = variables.find_variable, evaluate.select_frame
    quiet = server.module("breakpoint").suppress_new_breakpoint_event

    def info(*, name: str, variablesReference: int = 0, frameId: Any = None, **others: Any) -> Body:
        if others.get("asAddress"):
            return _data_answer(int(name, 0), int(others.get("bytes") or 1), name)
        try:
            value = private_attribute(find(variablesReference).find_child_by_name(name), "value")
        except (IndexError, server.failure):
            value = None
        if value is None:
            if frameId is not None:
                select(frameId)
            value = neutral.evaluate(name)
        return _data_of(value, name)

    def replace(*, breakpoints: Any, **others: Any) -> Body:
        with quiet():
            return {"breakpoints": _replaced(breakpoints)}

    server.add("dataBreakpointInfo", info)
    server.add("setDataBreakpoints", replace)
    server.declare("supportsDataBreakpoints")
    server.declare("supportsDataBreakpointBytes")


def _data_of(value: gdb.Value, name: str) -> Body:
    """Return the answer for a value: where it is in memory, if it is there."""
    address = value.address
    if address is None:
        reason = f"{name} is not in memory: `watch` and `trace who-wrote` in the debug console take registers, too."
        return {"dataId": None, "description": reason}
    kind = value.type.strip_typedefs()
    return _data_answer(int(address) & neutral.address_mask(), int(kind.sizeof), name)


def _data_answer(address: int, size: int, name: str) -> Body:
    return {
        "dataId": f"{address:#x},{size}",
        "description": f"{name}, {size} bytes at {address:#x}",
        "accessTypes": list(_CLASSES),
        "canPersist": False,
    }


def _replaced(specs: list[Body]) -> list[Body]:
    """Make the data breakpoints those that are wanted. Returns what became of each."""
    before = dict(_kept)
    _kept.clear()
    results: list[Body] = []
    for spec in specs:
        key = str(spec["dataId"]), str(spec.get("accessType") or "write")
        breakpoint = before.pop(key, None)
        try:
            if breakpoint is None or not breakpoint.is_valid():
                breakpoint = _watchpoint(*key)
            _restrict(breakpoint, spec)
            _kept[key] = breakpoint
            results.append({"id": breakpoint.number, "verified": True})
        except (gdb.error, ValueError, KeyError, RuntimeError) as error:
            if breakpoint is not None and breakpoint.is_valid():
                breakpoint.delete()
            results.append({"verified": False, "reason": "failed", "message": error_line(error)})
    for breakpoint in before.values():
        with contextlib.suppress(RuntimeError):  # the user has deleted it
            breakpoint.delete()
    return results


_DATA = re.compile(r"0x([0-9a-f]+),([1-9][0-9]*)")
_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


def _watchpoint(data: str, access: str) -> gdb.Breakpoint:
    found = _DATA.fullmatch(data)
    if found is None or access not in _CLASSES:
        raise ValueError(f"{data}, {access}: `dataBreakpointInfo` has not named this")
    address, size = int(found[1], 16), int(found[2])
    kind = f"{_WORDS[size]} *" if size in _WORDS else f"char (*)[{size}]"
    with neutral.c_language():
        return gdb.Breakpoint(f"*({kind}) {address:#x}", gdb.BP_WATCHPOINT, _CLASSES[access])


def _restrict(breakpoint: gdb.Breakpoint, spec: Body) -> None:
    """Set the condition, and how many hits do not count, as gdb's server does for other breakpoints."""
    breakpoint.condition = spec.get("condition") or None
    hits = spec.get("hitCondition")
    breakpoint.ignore_count = int(neutral.evaluate(hits)) if hits else 0
