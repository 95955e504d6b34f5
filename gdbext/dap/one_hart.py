"""Steps forward in the past move the hart of their thread alone, as at gdb's prompt.

gdb's server unlocks its scheduler before each step that does not ask for a single thread. But each hart has its own
place in the past: one that stands at a breakpoint would be stepped over it first, whichever hart the step is for.
"""

from __future__ import annotations

import inspect
from typing import Any

from rvtrace_gdb.gdbext.dap.server import DapServer
from rvtrace_gdb.gdbext.replay import position


def add(server: DapServer) -> None:
    """Change how the server prepares a step. Raises AttributeError or ValueError if it is another one than expected."""
    steps, set_thread = server.module("next"), server.module("state").set_thread
    known = steps._handle_thread_step
    prepare = getattr(known, "rvtrace_locks", known)  # what it was before an earlier `source`
    if list(inspect.signature(prepare).parameters)[:2] != ["thread_id", "single_thread"]:
        raise ValueError("_handle_thread_step has other parameters")

    def prepare_step(thread_id: int, single_thread: bool, *others: Any, **more: Any) -> Any:
        set_thread(thread_id)
        return prepare(thread_id, single_thread or position.number() is not None, *others, **more)

    prepare_step.rvtrace_locks = prepare  # type: ignore[attr-defined]
    steps._handle_thread_step = prepare_step
