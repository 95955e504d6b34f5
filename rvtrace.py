"""rvtrace: the past of a RISC-V program, inside gdb.

Inside gdb (`source rvtrace.py`) this file finds the folder it lies in and loads the extension from there. Outside gdb,
`import rvtrace` is the public Python API: the names below, and nothing else, are meant to be used by others.
"""

import importlib.util
import os
import sys


def _home() -> str:
    """The folder of this file. `__file__` is the outer file's where gdb sources this one from another Python file."""
    file = _home.__code__.co_filename
    return os.path.dirname(os.path.realpath(file if os.path.isfile(file) else __file__))


def _load_extension() -> None:
    """Load `gdbext` from beside this file, without putting this folder on gdb's module path (its names are common)."""
    home = _home()
    folder = os.path.join(home, "gdbext")
    if "gdbext.commands" in sys.modules:  # sourced before
        sys.modules["gdbext.commands"].release()
    for name in [name for name in sys.modules if name.partition(".")[0] == "gdbext"]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        "gdbext", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None or not os.path.isdir(folder):
        print(f"rvtrace: the folder gdbext is missing in {home}: source the rvtrace.py of a complete copy.")
        return
    package = importlib.util.module_from_spec(spec)
    sys.modules["gdbext"] = package
    spec.loader.exec_module(package)
    importlib.import_module("gdbext.commands").register(home)


if "gdb" in sys.modules:
    if sys.version_info < (3, 9):  # noqa: UP036 - gdb's Python is not the project's
        print("rvtrace: gdb was built with Python {}.{}; 3.9 or newer is needed.".format(*sys.version_info[:2]))
    else:
        _load_extension()
else:
    from typing import TYPE_CHECKING, Any

    from decode.history import GAP, Event, EventKind, History
    from decode.image import Image
    from session.capture import load as load_capture
    from session.capture import save as save_capture
    from session.captured import Capture
    from session.context import Context
    from session.session import Session
    from support.errors import RvtraceError

    if TYPE_CHECKING:
        from console.api import Bench
        from console.api_types import (
            CheckFailed,
            Instruction,
            Latencies,
            NotReached,
            Saved,
            TraceEvent,
        )
        from console.engine_state import Stop
        from console.engine_trace import TraceState
        from console.measuring import Latency
        from console.rig import Rig
        from console.rig_qemu import QemuRig

    _LATER = {
        "Bench": "console.api",
        "CheckFailed": "console.api_types",
        "Instruction": "console.api_types",
        "Latencies": "console.api_types",
        "Latency": "console.measuring",
        "NotReached": "console.api_types",
        "QemuRig": "console.rig_qemu",
        "Rig": "console.rig",
        "Saved": "console.api_types",
        "Stop": "console.engine_state",
        "TraceEvent": "console.api_types",
        "TraceState": "console.engine_trace",
    }
    """Of scripted captures (docs/scripts.md): loaded when they are asked for, because few programs need them."""

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_LATER[name]), name)

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
