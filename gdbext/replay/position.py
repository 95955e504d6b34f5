"""Where gdb is: in the present, or at a number of the history.

The proxy adds the register trace_pos to the target: the number of the instruction that runs next, as `trace history`
prints it, or -1 in the present. It is read from the frame, so that callers have the number of their calls.

What a hart runs next in the present is in no history; `present` says where it stands there.
"""

from __future__ import annotations

from typing import Callable

import gdb

from rvtrace_gdb.gdbext.tracer import hart_of

REGISTER = "trace_pos"

number_in: Callable[[gdb.Frame, int], int | None] | None = None
"""The number where a frame is whose register has this one: gdb's own unwinder leaves it as it is (`unwinder`)."""


def available() -> bool:
    """Whether gdb is connected through the proxy, as far as its registers say."""
    try:
        gdb.newest_frame().read_register(REGISTER)
    except (ValueError, gdb.error):
        return False
    return True


def unreadable() -> bool:
    """Whether there is a target that stands still, and does not say its registers: it has lost power."""
    thread = gdb.selected_thread()
    if thread is None or not thread.is_valid() or thread.is_running():
        return False
    try:
        gdb.newest_frame().read_register("pc")
    except gdb.error:
        return True
    return False


def number() -> int | None:
    """The number where the selected thread is in the past, None in the present or without the proxy."""
    try:
        return of(gdb.newest_frame())
    except gdb.error:  # no thread, or it is running
        return None


def selected_number() -> int | None:
    """As `number`, of the selected frame: where its call was made. It may be unknown: None."""
    try:
        return of(gdb.selected_frame())
    except gdb.error:
        return None


def of(frame: gdb.Frame) -> int | None:
    """The number where a frame is, of the call that was made in it if it called; None where that is not known."""
    try:
        value = frame.read_register(REGISTER)
        found = int(value)
        if found < 1:
            return None
        return found if number_in is None else number_in(frame, found)
    except (ValueError, gdb.error):  # no such register; not available in this frame
        return None


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
        return {} if of(frame) is not None else {"pc": int(frame.pc())}
    except gdb.error:
        return {}
    finally:
        if thread is not before:
            before.switch()


def _threads(hart: int) -> list[gdb.InferiorThread]:
    return [it for it in gdb.selected_inferior().threads() if hart_of(it) == hart]
