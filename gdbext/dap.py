"""Going back in gdb's own server of the Debug Adapter Protocol (`gdb -i dap`), which has no requests for that.

`stepBack` and `reverseContinue` are added, and with them the buttons of IDEs, and each command of `mi.commands` as the
request `rvtrace/NAME`, with its options as arguments by name. Only gdb 14 and later has the server, and its modules are
private to gdb: what is needed of them is looked for (gdb 16 and 18 differ), and a line says what is not there.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import dap_variables
from rvtrace_gdb.gdbext.mi import commands as mi
from rvtrace_gdb.gdbext.replay import position

REVERSE_REQUESTS = ("stepBack", "reverseContinue")
_PACKAGE = "gdb.dap"


def add_requests() -> None:
    """Add the requests, if gdb is a server of the Debug Adapter Protocol."""
    if f"{_PACKAGE}.server" not in sys.modules:
        return
    try:
        _DapServer().add()
    except (AttributeError, ImportError, KeyError, TypeError, ValueError, AssertionError) as error:
        print(
            f"The DAP server of gdb {gdb.VERSION} is not the one rvtrace knows ({error!r}): there is no stepBack;"
            " `reverse-next`, `reverse-continue` and `trace goto` in the debug console do the same."
        )


class _DapServer:
    """What is used of gdb's server."""

    def __init__(self) -> None:
        server, events, state, startup = (sys.modules[f"{_PACKAGE}.{name}"] for name in
                                          ("server", "events", "state", "startup"))  # fmt: skip
        self._request: Callable[..., Callable[[Callable[..., Any]], object]] = server.request
        self._send_event: Callable[[str, dict[str, Any]], None] = server.send_event
        self._set_thread: Callable[[int], None] = state.set_thread
        self._execute: Callable[..., None] = events.exec_and_expect_stop
        self._failure: type[Exception] = startup.DAPException
        self._tables: tuple[dict[str, Any], dict[str, Any]] = server._commands, server._capabilities
        self._declare: Callable[[str], Callable[[object], object]] = server.capability
        self._events = events
        # gdb 16 keeps an error to itself, unless it is asked to propagate it; gdb 18 always does.
        propagates = "propagate_exception" in inspect.signature(self._execute).parameters
        self._propagated = {"propagate_exception": True} if propagates else {}
        if not propagates and "propagate_exception" in inspect.signature(startup.exec_and_log).parameters:
            raise ValueError("exec_and_expect_stop does not propagate errors")
        self._variables = sys.modules.get(f"{_PACKAGE}.varref")

    def add(self) -> None:
        """Add all requests, and declare them. Those of an earlier `source` are replaced."""
        _explain_ends(self._events)
        if self._variables is not None:
            dap_variables.show_unknown(self._variables)
        requests, capabilities = self._tables
        for name in [name for name in requests if name in REVERSE_REQUESTS or name.startswith("rvtrace/")]:
            del requests[name]
        capabilities.pop("supportsStepBack", None)

        def step_back(*, threadId: int, granularity: str = "statement", **others: Any) -> None:
            self._go(threadId, "reverse-stepi" if granularity == "instruction" else "reverse-next")

        def reverse_continue(*, threadId: int, **others: Any) -> None:
            self._go(threadId, "reverse-continue")

        # The response must come before the stop: VS Code takes the response for the news that the program runs.
        self._request("stepBack", response=False)(step_back)
        self._request("reverseContinue", response=False)(reverse_continue)
        self._declare("supportsStepBack")(step_back)
        for command in mi.TABLE:
            self._request(f"rvtrace/{command.name}")(self._answer_of(command))

    def _go(self, thread: int, command: str) -> None:
        """Resume backward. Where that fails, the client is told why, and that the thread has not moved."""
        try:
            self._set_thread(thread)
            self._execute(command, **self._propagated)
        except self._failure as error:
            if hasattr(self._events, "_suppress_cont"):
                vars(self._events)["_suppress_cont"] = False  # nothing continued
            advice = "" if position.is_available() else " `trace connect` lets gdb go backward in what is traced."
            self._send_event("output", {"category": "stderr", "output": f"{error}{advice}\n"})
            stop = {"threadId": thread, "allThreadsStopped": True, "reason": "pause"}
            self._send_event("stopped", stop)

    def _answer_of(self, command: mi.MiCommand) -> Callable[..., Any]:
        def answer(**given: Any) -> Any:
            try:
                return command.run(_command_words(command, given))
            except gdb.GdbError as error:
                raise self._failure(str(error)) from None

        answer.__annotations__.clear()  # the server would check an argument named `given`
        return answer


_ENDS = "No more reverse-execution history"
"""gdb's words where the trace begins or ends."""


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


def _command_words(command: mi.MiCommand, arguments: dict[str, Any]) -> list[str]:
    """Return arguments by name as the words of an MI command. `arguments` is what follows its options, a text or list.

    Raises gdb.GdbError.
    """
    rest = arguments.pop("arguments", [])
    names = [option.name.lstrip("-") for option in command.options]
    words: list[str] = []
    for name, value in arguments.items():
        if name not in names:
            known = ", ".join([*names, "arguments"])
            raise gdb.GdbError(f"rvtrace/{command.name}: there is no argument {name}: it takes {known}")
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is False else [f"--{name}"] if one is True else [f"--{name}", str(one)]
    return [*words, *(["--"] if words and not command.raw else []), *(rest.split() if isinstance(rest, str) else rest)]
