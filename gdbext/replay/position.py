"""Where gdb is: in the present, or at an instruction number of the history.

The proxy adds the register trace_pos to the target: the number of the instruction that runs next, as `trace history`
prints it, -1 in the present, or 0 in a fork. It is read from the frame, so that each calling frame has the number of
its call.

The instruction that a hart runs next in the present is not in the history; `present_pc` returns its address.
"""

from __future__ import annotations

from typing import Callable

import gdb

from rvtrace_gdb.gdbext.harts import hart_of

REGISTER = "trace_pos"

caller_number: Callable[[gdb.Frame, int], int | None] | None = None
"""Returns the number of a frame, given its register trace_pos. Set by `unwinder`: where gdb's own unwinder finds a
caller, that register is still the one of the innermost frame.
"""


def is_available() -> bool:
    """Whether gdb is connected through the proxy: the target then has the register trace_pos."""
    try:
        gdb.newest_frame().read_register(REGISTER)
    except (ValueError, gdb.error):
        return False
    return True


def is_forked() -> bool:
    """Whether the selected thread is in a fork, where the register trace_pos is 0."""
    try:
        return int(gdb.newest_frame().read_register(REGISTER)) == 0
    except (ValueError, gdb.error):
        return False


def is_target_unreadable() -> bool:
    """Whether the target is stopped but its registers cannot be read, as when it has lost power."""
    thread = gdb.selected_thread()
    if thread is None or not thread.is_valid() or thread.is_running():
        return False
    try:
        gdb.newest_frame().read_register("pc")
    except gdb.error:
        return True
    return False


def number() -> int | None:
    """Return the number at which the selected thread is in the past; None in the present or without the proxy."""
    try:
        return number_of(gdb.newest_frame())
    except gdb.error:  # no thread, or it is running
        return None


def selected_number() -> int | None:
    """Return the number of the selected frame, that of its call if it called; None also where that is not known."""
    try:
        return number_of(gdb.selected_frame())
    except gdb.error:
        return None


def number_of(frame: gdb.Frame) -> int | None:
    """Return the number at which a frame is, that of its call if it called; None where that is not known."""
    try:
        value = frame.read_register(REGISTER)
        found = int(value)
        if found < 1:
            return None
        return found if caller_number is None else caller_number(frame, found)
    except (ValueError, gdb.error):  # no such register; not available in this frame
        return None


def present_pc(hart: int | None) -> dict[str, int]:
    """Return {"pc": address} of a stopped hart in the present (None means that of the selected thread); {} in the past,
    or while the hart runs.
    """
    before = gdb.selected_thread()
    if before is None or not before.is_valid():
        return {}
    harts = [] if hart is None else [it for it in gdb.selected_inferior().threads() if hart_of(it) == hart]
    thread = harts[0] if harts and hart_of(before) != hart else before
    if thread.is_running():
        return {}
    try:
        thread.switch()
        frame = gdb.newest_frame()
        return {} if number_of(frame) is not None else {"pc": int(frame.pc())}
    except gdb.error:
        return {}
    finally:
        if thread is not before:
            before.switch()
