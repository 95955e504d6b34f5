"""Whether the OpenOCD that gdb is connected to is the one whose Tcl port the session uses: there may be several.

gdb sets a variable of OpenOCD's through `monitor`, and the session reads it over Tcl: another OpenOCD does not have it.
"""

from __future__ import annotations

import os

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.csr_access import connection
from rvtrace_gdb.gdbext.lost_connection import refusals_suppressed

VARIABLE = "::rvtrace_connection"
_known: tuple[int | None, str | None] | None = None


def mark() -> str | None:
    """Return the value that gdb's OpenOCD has in `VARIABLE`; None if gdb is not connected to an OpenOCD, or cannot ask
    it now because the program runs.
    """
    global _known
    thread = gdb.selected_thread()
    if thread is None or not thread.is_valid():
        return None
    if _known is not None and _known[0] == connection():
        return _known[1]
    if thread.is_running():
        return None
    asked, value, found = connection(), os.urandom(8).hex(), None
    with refusals_suppressed():
        if "Open On-Chip Debugger" in neutral.printed("monitor version"):
            gdb.execute(f"monitor set {VARIABLE} {value}", to_string=True)
            found = value
    _known = asked, found
    return found
