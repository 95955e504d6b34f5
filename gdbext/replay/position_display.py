"""Showing where gdb is in the past: after each stop, or in the prompt (`set trace position`)."""

from __future__ import annotations

import contextlib
import sys
from typing import Callable

import gdb

from rvtrace_gdb.gdbext import settings
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.replay import position, record_btrace
from rvtrace_gdb.gdbext.text import print_at_stop
from rvtrace_gdb.gdbext.tracer import tracer


def place() -> tuple[int, int] | None:
    """Return the number at which the selected thread is in the past, and how many its history has; None in the present.

    At the end of the past, after its newest instruction, the first is one more than the second.
    """
    number = position.number()
    if number is None or record_btrace.is_active():
        return None
    return number, tracer().request("place", thread_hart=selected_hart())["length"]


def text(number: int, length: int) -> str:
    """Return `1661 of 2007`; at the end `end of 2007`."""
    return f"{number} of {length}" if number <= length else f"end of {length}"


def print_after_stop(event: object) -> None:
    """Print the place after a stop in the past, unless the user wants it elsewhere, or a breakpoint is silent."""
    if settings.position() != "stop" or any(map(_is_silent, getattr(event, "breakpoints", ()))):
        return
    found = place()
    if found is None:
        return
    line = f"[{text(*found)}]"
    server = sys.modules.get("gdb.dap.server")
    if server is None:
        print_at_stop(line)
    else:  # gdb 18 keeps to itself what is printed while a request resumes
        server.send_event("output", {"category": "stdout", "output": f"{line}\n"})


def _is_silent(breakpoint: gdb.Breakpoint) -> bool:
    return bool(breakpoint.silent) or (breakpoint.commands or "").lstrip().startswith("silent\n")


class PastPrompt:
    """gdb's prompt: in the past `(past 1661/2007) ` in place of the user's, after `set trace position prompt`.

    A hook that another extension has installed is asked for the prompt in the present.
    """

    def __init__(self) -> None:
        self._other: Callable[[str], str | None] | None = None
        self._is_installed = False
        self._of_user = self._shown = ""

    def update(self) -> None:
        """Install the hook when it is wanted. It stays: extensions loaded later may have it in theirs."""
        if settings.position() == "prompt" and not self._is_installed:
            self._is_installed, self._other = True, gdb.prompt_hook
            gdb.prompt_hook = self

    def __call__(self, current: str) -> str:
        """Return the prompt to be shown. *current*: what this returned last, or what the user has set since."""
        if current != self._shown:
            self._of_user = current
        self._shown = self._of_past() or (self._other and self._other(self._of_user)) or self._of_user
        return self._shown

    def _of_past(self) -> str:
        """Return the prompt with the place in the past, "" in the present, or where it is not wanted."""
        found = None
        if settings.position() == "prompt":
            with contextlib.suppress(gdb.error, gdb.GdbError, KeyboardInterrupt):  # the next command meets the reason
                found = place()
        return "" if found is None else f"(past {text(*found).replace(' of ', '/')}) "


past_prompt = PastPrompt()
