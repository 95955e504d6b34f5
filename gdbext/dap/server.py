"""What rvtrace uses of gdb's server of the Debug Adapter Protocol, whose modules are private to gdb."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import error_line

_PACKAGE = "gdb.dap"
_ADDED = "rvtrace_added"
Body = dict[str, Any]
_Replaced = dict[tuple[str, str], Any]
"""What rvtrace has added, (`request` or `capability`, name), and what was there before; None: nothing."""
_CHECKED = {"int": int, "str": str}
"""The types of arguments that the server checks for us."""


class DapServer:
    """The server: its requests and capabilities. A lookup raises AttributeError or KeyError where there is nothing."""

    def __init__(self) -> None:
        server = self.module("server")
        self.requests: dict[str, Callable[..., Any]] = server._commands
        self.capabilities: dict[str, Any] = server._capabilities
        self.send_event: Callable[[str, Body], None] = server.send_event
        self.failure: type[Exception] = self.module("startup").DAPException
        self._request: Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]] = server.request
        self._added: _Replaced = vars(server).setdefault(_ADDED, {})

    @staticmethod
    def module(name: str) -> Any:
        """Return a module of the server. Raises KeyError."""
        return sys.modules[f"{_PACKAGE}.{name}"]

    def forget_added(self) -> None:
        """Make the tables of requests and capabilities as gdb has them."""
        for (table, name), before in self._added.items():
            entries = self.requests if table == "request" else self.capabilities
            if before is None:
                entries.pop(name, None)
            else:
                entries[name] = before
        self._added.clear()

    def add(self, name: str, function: Callable[..., Any], *, response: bool = True) -> None:
        """Add a request, or replace it. *function* takes its arguments by name, and runs in gdb's thread.

        Without *response* the response comes at once: the events that follow must come after it.
        """
        before = self.requests.pop(name, None)
        try:
            handler = self._request(name, response=response)(self._with_failures(function))
        except BaseException:
            if before is not None:
                self.requests[name] = before
            raise
        self.requests[name] = handler
        self._added.setdefault(("request", name), before)

    def add_variant(self, name: str, argument: str, function: Callable[..., Any]) -> None:
        """Let *function* answer a request of gdb's if it has a certain argument. Its response comes at once."""
        plain = self.requests[name]
        self.add(name, function, response=False)
        special = self.requests[name]
        self.requests[name] = lambda **given: (plain if given.get(argument) is None else special)(**given)

    def add_check(self, name: str, function: Callable[..., Any]) -> None:
        """Let *function*, which may refuse a request of gdb's by an error, run before it."""
        plain = self.requests[name]
        self.add(name, function)
        check = self.requests[name]

        def checked(**given: Any) -> Any:
            check(**given)
            return plain(**given)

        self.requests[name] = checked

    def change_answer(self, name: str, change: Callable[[Body], Body]) -> None:
        """Let *change* make the answer to a request of gdb's. It runs outside gdb's thread."""
        plain = self.requests[name]
        self._added.setdefault(("request", name), plain)
        self.requests[name] = lambda **given: change(plain(**given))

    def add_to_list(self, name: str, field: str, function: Callable[..., list[Body]]) -> None:
        """Let *function* make further entries for a list in the answer of a request of gdb's."""
        plain = self.requests[name]
        self.add(name, function)
        further = self.requests[name]

        def extended(**given: Any) -> Body:
            answer = dict(plain(**given))
            return {**answer, field: [*answer[field], *further(**given)]}

        self.requests[name] = extended

    def declare(self, capability: str) -> None:
        """Declare a capability, so that clients show what it stands for."""
        self._added.setdefault(("capability", capability), self.capabilities.get(capability))
        self.capabilities[capability] = True

    def _with_failures(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(**given: Any) -> Any:
            try:
                return function(**given)
            except (gdb.error, gdb.GdbError) as error:
                raise self.failure(error_line(error)) from None

        types = function.__annotations__.items()
        run.__annotations__ = {name: _CHECKED[kind] for name, kind in types if kind in _CHECKED}
        return run


class DapResumption:
    """How the server lets the program run, so that the client is told of the stop that follows."""

    def __init__(self, server: DapServer) -> None:
        self._server = server
        events, startup = server.module("events"), server.module("startup")
        self._set_thread: Callable[[int], None] = server.module("state").set_thread
        self._execute: Callable[..., None] = events.exec_and_expect_stop
        self._expect: Callable[[str], None] = events.expect_stop
        self._events = events
        # gdb 16 keeps an error to itself, unless it is asked to propagate it; gdb 18 always does.
        propagates = "propagate_exception" in inspect.signature(self._execute).parameters
        self._propagated = {"propagate_exception": True} if propagates else {}
        if not propagates and "propagate_exception" in inspect.signature(startup.exec_and_log).parameters:
            raise ValueError("exec_and_expect_stop does not propagate errors")

    def run(self, thread: int, command: str, reason: str | None = None) -> None:
        """Run a command that resumes. *reason*: of the stop, if it is not gdb's.

        Where that fails, the client is told why, and that the thread has not moved: it has taken the response for the
        news that the program runs.
        """
        try:
            self._set_thread(thread)
            if reason is not None:
                self._expect(reason)
            self._execute(command, **self._propagated)
        except (self._server.failure, gdb.error, gdb.GdbError) as error:
            advice = "" if position.is_available() else " `trace connect` lets gdb go backward in what is traced."
            self._server.send_event("output", {"category": "stderr", "output": f"{error_line(error)}{advice}\n"})
            self.stay(thread, "pause")

    def stay(self, thread: int, reason: str) -> None:
        """Tell the client that the thread is where it was."""
        state = vars(self._events)
        for name, value in (("_suppress_cont", False), ("_expected_stop_reason", None)):
            if name in state:
                state[name] = value  # nothing continued
        self._server.send_event("stopped", {"threadId": thread, "allThreadsStopped": True, "reason": reason})
