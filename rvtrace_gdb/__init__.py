"""rvtrace: the past of a RISC-V program, inside gdb.

`import rvtrace_gdb` is the public Python API: the names in `__all__`, and nothing else, are meant to be used by others.
Each is loaded when it is asked for. The import itself loads nothing, because gdb loads this file, too (`rvtrace.py`),
and gdb's Python may be older than the project's.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rvtrace_gdb.console.api import Bench
    from rvtrace_gdb.console.api_types import (
        CheckFailed,
        Instruction,
        Latencies,
        NotReached,
        Saved,
        TraceEvent,
    )
    from rvtrace_gdb.console.engine_state import Stop
    from rvtrace_gdb.console.engine_trace import TraceState
    from rvtrace_gdb.console.measuring import Latency
    from rvtrace_gdb.console.rig import Rig
    from rvtrace_gdb.console.rig_qemu import QemuRig
    from rvtrace_gdb.decode.history import GAP, Event, EventKind, History
    from rvtrace_gdb.decode.image import Image
    from rvtrace_gdb.session.capture import load as load_capture
    from rvtrace_gdb.session.capture import save as save_capture
    from rvtrace_gdb.session.captured import Capture
    from rvtrace_gdb.session.context import Context
    from rvtrace_gdb.session.session import Session
    from rvtrace_gdb.support.errors import RvtraceError

_HOMES = {
    "GAP": ("rvtrace_gdb.decode.history", "GAP"),
    "Bench": ("rvtrace_gdb.console.api", "Bench"),
    "Capture": ("rvtrace_gdb.session.captured", "Capture"),
    "CheckFailed": ("rvtrace_gdb.console.api_types", "CheckFailed"),
    "Context": ("rvtrace_gdb.session.context", "Context"),
    "Event": ("rvtrace_gdb.decode.history", "Event"),
    "EventKind": ("rvtrace_gdb.decode.history", "EventKind"),
    "History": ("rvtrace_gdb.decode.history", "History"),
    "Image": ("rvtrace_gdb.decode.image", "Image"),
    "Instruction": ("rvtrace_gdb.console.api_types", "Instruction"),
    "Latencies": ("rvtrace_gdb.console.api_types", "Latencies"),
    "Latency": ("rvtrace_gdb.console.measuring", "Latency"),
    "NotReached": ("rvtrace_gdb.console.api_types", "NotReached"),
    "QemuRig": ("rvtrace_gdb.console.rig_qemu", "QemuRig"),
    "Rig": ("rvtrace_gdb.console.rig", "Rig"),
    "RvtraceError": ("rvtrace_gdb.support.errors", "RvtraceError"),
    "Saved": ("rvtrace_gdb.console.api_types", "Saved"),
    "Session": ("rvtrace_gdb.session.session", "Session"),
    "Stop": ("rvtrace_gdb.console.engine_state", "Stop"),
    "TraceEvent": ("rvtrace_gdb.console.api_types", "TraceEvent"),
    "TraceState": ("rvtrace_gdb.console.engine_trace", "TraceState"),
    "load_capture": ("rvtrace_gdb.session.capture", "load"),
    "save_capture": ("rvtrace_gdb.session.capture", "save"),
}
"""Public name -> the module and the name in it. A test compares it with the imports above."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = _HOMES[name]
    return getattr(import_module(module), original)


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})


__all__ = [
    "GAP",
    "Bench",
    "Capture",
    "CheckFailed",
    "Context",
    "Event",
    "EventKind",
    "History",
    "Image",
    "Instruction",
    "Latencies",
    "Latency",
    "NotReached",
    "QemuRig",
    "Rig",
    "RvtraceError",
    "Saved",
    "Session",
    "Stop",
    "TraceEvent",
    "TraceState",
    "load_capture",
    "save_capture",
]
