"""The method of the session protocol for gdb's own recording.

native {context, limit, seconds} -> {instructions, length, first, lines}: the trace is read out and decoded, so that gdb
may `record btrace`. *limit*: that many positions at most; *seconds*: how long gdb waits for answers. gdb gets
*instructions* of *length* in all, the first of which is number *first* of the history.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rvtrace_gdb.decode.history import GAP
from rvtrace_gdb.session.debugger import Debugger, NotConnected, debugger_of
from rvtrace_gdb.session.params import Params
from rvtrace_gdb.session.proxy.btrace import Btrace, Plan
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress


class InThePast(RvtraceError):
    """gdb cannot record where our own past is."""

    def __init__(self) -> None:
        super().__init__("gdb is in the past, and its own recording begins in the present: `trace live` first")


def native(session: Session, params: Params, progress: Progress) -> Any:
    """Read out and decode what gdb is going to record. Raises NotConnected, InThePast, and as `Session.history`."""
    debugger = debugger_of(session, params.context())
    if not debugger.connected:
        raise NotConnected
    if debugger.away():
        raise InThePast
    context, limit = debugger.context, params.number("limit")
    thread_hart = context.thread_hart
    if thread_hart is not None:
        context = replace(context, hart=None)  # gdb records each thread by itself, whichever hart is to be shown
    it = session.selected(context, progress)
    history, hart, lines = it.history, it.hart, it.lines
    _btrace(debugger).prepare(Plan(context, limit, params.number("seconds")))
    if thread_hart and thread_hart != hart:
        said = f"note:     hart {thread_hart} is not in this trace: gdb has nothing of it, only of other threads"
        return {"instructions": 0, "length": 0, "first": 1, "lines": [said]}
    length = len(history)
    first = max(0, length - limit)
    if length and history.pc(first) == GAP:
        first += 1
    return {"instructions": length - first, "length": length, "first": first + 1, "lines": lines}


def _btrace(debugger: Debugger) -> Btrace:
    return next(it for it in debugger.extensions if isinstance(it, Btrace))


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {"native": native}
