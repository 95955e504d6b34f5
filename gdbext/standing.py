"""Where a hart stands in the present: what runs there next is in no history."""

from __future__ import annotations

import gdb

from rvtrace_gdb.gdbext import position
from rvtrace_gdb.gdbext.tracer import hart_of


def present(hart: int | None) -> dict[str, int]:
    """{pc}: where a hart stands, None: that of the selected thread; {} in the past, or while it runs."""
    before = gdb.selected_thread()
    if before is None or not before.is_valid():
        return {}
    harts = [] if hart is None else _threads(hart)
    thread = harts[0] if harts and hart_of(before) != hart else before
    if thread.is_running():
        return {}
    try:
        thread.switch()
        frame = gdb.newest_frame()
        return {} if position.of(frame) is not None else {"pc": int(frame.pc())}
    except gdb.error:
        return {}
    finally:
        if thread is not before:
            before.switch()


def _threads(hart: int) -> list[gdb.InferiorThread]:
    return [it for it in gdb.selected_inferior().threads() if hart_of(it) == hart]
