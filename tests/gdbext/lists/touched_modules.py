"""Sourced in gdb after rvtrace.py: which of our modules a command runs code of, and what it asks of the session.

`python touched('COMMAND')` prints [requests: [method, parameters], modules].
"""

import json
import sys
from types import FrameType
from typing import Any

import gdb

client = sys.modules["rvtrace_gdb.gdbext.tracer"].tracer()._client
exchange = client._exchange
requests: list[Any] = []


def noted(method: str, params: Any) -> Any:
    requests.append([method, params])
    return exchange(method, params)


client._exchange = noted


def touched(command: str) -> None:
    requests.clear()
    modules = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            modules.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        gdb.execute(command, to_string=True)
    finally:
        sys.setprofile(None)
    gdb.write(json.dumps([requests, sorted(modules)]) + "\n")
