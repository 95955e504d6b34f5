"""The terminal that shows what gdb prints: how wide it is, and the addresses that fit on it."""

from __future__ import annotations

import contextlib
import os

import gdb

CONSOLE = os.environ.get("RVTRACE_CONSOLE", "")
"""The terminal where `rvtrace console` shows what gdb sends it through a pipe; empty without one."""

WIDE_ENOUGH = 100
"""Columns for a row with two addresses and the names of two functions, which most have."""


def columns() -> int | None:
    """Return the width of the terminal; None where there is none, or where lines may have any length."""
    if CONSOLE:
        return _columns_of(CONSOLE)
    width = gdb.parameter("width")
    return int(width) if width and os.isatty(1) else None


def _columns_of(terminal: str) -> int | None:
    with contextlib.suppress(OSError):
        file = os.open(terminal, os.O_RDONLY | os.O_NOCTTY)  # which does not become gdb's own terminal
        try:
            return os.get_terminal_size(file).columns
        finally:
            os.close(file)
    return None


_narrow = False


def measure() -> None:
    """Look how wide the terminal is: before a list, because it may have changed."""
    global _narrow
    width = columns()
    _narrow = width is not None and width < WIDE_ENOUGH


def address(pc: int, digits: int) -> str:
    """Return an address with *digits* digits; on a narrow terminal with as many as it needs, so that rows fit."""
    return f"{pc:#x}" if _narrow else f"0x{pc:0{digits}x}"
