"""What the lines of an answer tell of a trace, as facts: for a status line and for test benches (docs/ide.md).

encoders   [{name, state}], also of the harts whose records are read
captured   bytes in all sinks; *size*: of those there is room for; *unread*: recorded and not read out yet
records    {there, depth}: Control Transfer Records of all harts
lost       what says that something is missing, a text each
history    how much ran, a text; *file*: the capture that is looked at
ended      tracing was stopped just now, or had ended already; *nothing*: nothing is traced; *begun*: it was just now
"""

from collections.abc import Sequence
from typing import Any

from rvtrace_gdb.support.lines import Line

_FLAGS = ("ended", "nothing", "begun")
_TEXTS = ("history", "file")


def answer(lines: Sequence[str]) -> dict[str, Any]:
    """The answer to a request: the lines, and the *state* they tell if they tell any."""
    state = told(lines)
    return {"lines": lines, "state": state} if state else {"lines": lines}


def told(lines: Sequence[str]) -> dict[str, Any]:
    """What lines tell."""
    facts = [fact for line in lines if isinstance(line, Line) for fact in line.facts.items()]
    state: dict[str, Any] = {name: int(value) for name, value in facts if name in _FLAGS}
    state |= {name: value for name, value in facts if name in _TEXTS}
    encoders = dict(value for name, value in facts if name == "encoder")
    if encoders:
        state["encoders"] = [{"name": name, "state": how} for name, how in encoders.items()]
    fills = [value for name, value in facts if name == "filled"]
    if fills:
        captured, size = map(sum, zip(*fills, strict=True))
        state |= {"captured": captured, "size": size, "unread": sum(value for name, value in facts if name == "unread")}
    records = [value for name, value in facts if name == "records"]
    if records:
        state["records"] = dict(zip(("there", "depth"), map(sum, zip(*records, strict=True)), strict=True))
    lost = [value for name, value in facts if name == "lost"]
    return state | ({"lost": lost} if lost else {})
