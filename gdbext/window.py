"""The TUI window that shows the history: `layout trace`, and what belongs to it."""

from __future__ import annotations

import contextlib
import sys
from typing import Callable

import gdb

from rvtrace_gdb.gdbext import window_keys
from rvtrace_gdb.gdbext.window_drawn import Window, shown

NAME = "trace"
LAYOUT = "trace trace 3 src 3 status 0 cmd 2"
WINDOW_BYTES = 4096  # half a second, where JTAG needs half a millisecond for a word


class Here(gdb.Command):
    """Go to the instruction that the history window was scrolled to.
    Usage: trace here

    It is the one marked "->" in `layout trace`, in the middle after scrolling,
    or the one that was clicked; the source window shows its line."""

    def __init__(self) -> None:
        super().__init__("trace here", gdb.COMMAND_TUI, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        if argument.strip():
            raise gdb.GdbError("Usage: trace here")
        if not shown or shown[0].chosen is None:
            raise gdb.GdbError("trace here: no instruction was chosen: scroll in `layout trace`, or click on a line.")
        gdb.execute(f"trace goto {shown[0].chosen}", from_tty)


class WindowBytes(gdb.Parameter):
    """How many bytes of trace are read out of the target for the history window.

    When the program has stopped, the window of `layout trace` shows what ran.
    For that newer trace is read out, but if it is more than this, the window
    says so and waits for `trace history`. 0: always wait. unlimited: never."""

    set_doc = "Set how many bytes of trace are read out of the target for the history window."
    show_doc = "Show how many bytes of trace are read out of the target for the history window."

    def __init__(self) -> None:
        super().__init__("trace window-bytes", gdb.COMMAND_DATA, gdb.PARAM_ZUINTEGER_UNLIMITED)
        self.value = WINDOW_BYTES

    def get_set_string(self) -> str:
        return ""

    def get_show_string(self, svalue: str) -> str:
        return f"Up to {svalue} bytes of trace are read out of the target for the history window."


def _make(window: gdb.TuiWindow) -> Window:
    """gdb keeps what was registered first: after a second `source`, too, the window is that of the newest."""
    newest: Window = sys.modules[__name__].Window(window)
    return newest


def _define() -> None:
    """The window and its layout, where gdb was built with a TUI."""
    if not hasattr(gdb, "register_window_type"):  # gdb < 10, or without TUI
        return
    WindowBytes()
    gdb.register_window_type(NAME, _make)
    with contextlib.suppress(gdb.error):  # there from an earlier `source`
        gdb.execute(f"tui new-layout {LAYOUT}", to_string=True)
    window_keys.bind()
    Here()


def release() -> None:
    """Before a second `source` loads everything afresh: the window that is open does nothing any more."""
    for window in tuple(shown):  # which closing takes it from
        window.retire()


COMMANDS: tuple[Callable[[], object], ...] = (_define,)
"""What is called when rvtrace is loaded, in order."""
