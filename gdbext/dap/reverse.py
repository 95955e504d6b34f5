"""Requests of the Debug Adapter Protocol that go backward: `stepBack` and `reverseContinue`, the buttons of IDEs."""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.gdbext.dap.server import DapResumption, DapServer
from rvtrace_gdb.gdbext.replay import position

_ENDS = "No more reverse-execution history"
"""gdb's words where the trace begins or ends."""


def add(server: DapServer) -> None:
    """Add the requests to a server, and why a restarted frame is none of them."""
    resumption = DapResumption(server)

    def step_back(*, threadId: int, granularity: str = "statement", **others: Any) -> None:
        resumption.run(threadId, "reverse-stepi" if granularity == "instruction" else "reverse-next")

    def reverse_continue(*, threadId: int, **others: Any) -> None:
        resumption.run(threadId, "reverse-continue")

    def restart_frame(**others: Any) -> None:
        raise server.failure(
            "A frame cannot be restarted: what it has written to memory and to devices stays written. `reverse-finish`"
            " in the debug console goes back to where it was called, with the values from then."
        )

    # The response must come before the stop: VS Code takes the response for the news that the program runs.
    server.add("stepBack", step_back, response=False)
    server.add("reverseContinue", reverse_continue, response=False)
    server.declare("supportsStepBack")
    server.add("restartFrame", restart_frame)
    _explain_ends(server.module("events"))


def _explain_ends(events: Any) -> None:
    """Let the server say why gdb has stopped where the trace begins or ends, in gdb's words."""
    for name in ("send_event", "send_event_maybe_later"):  # gdb 16 sends stops by the second
        if hasattr(events, name):
            _explain_ends_sent_by(events, name)


def _explain_ends_sent_by(events: Any, name: str) -> None:
    known = getattr(events, name)
    send = getattr(known, "rvtrace_explains", known)  # what it was before an earlier `source`

    def send_event(event: str, body: Any = None) -> None:
        if event == "stopped" and isinstance(body, dict) and _is_end(body.get("reason")):
            body = {**body, "reason": "no-history", "description": _ENDS, "text": _ENDS}
        send(event, body)

    send_event.rvtrace_explains = send  # type: ignore[attr-defined]
    setattr(events, name, send_event)


def _is_end(reason: object) -> bool:
    """Return whether a stop is where the trace begins or ends, for which gdb has no reason of its own."""
    return reason == "no-history" or (reason == "stopped" and position.is_available())
