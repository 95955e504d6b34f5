"""Asking the client in the middle of a request of its, what only it can do: gdb reads registers, and sends packets.

    {"id": 7, "need": {"do": "packets", "packets": ["p96f"]}, "question": 3}    the session, while it works on request 7
    {"answer": 7, "question": 3, "result": ["0d00000000000000"]}               the client, or
    {"answer": 7, "question": 3, "error": {"message": "one line", "kind": "HartRuns"}}

A client that cancels a request, or makes another, before it has answered, has given that question up.
"""

import threading
from collections.abc import Callable
from typing import Any

from rvtrace_gdb.support.errors import Cancelled, RvtraceError

Message = dict[str, Any]
_INTERRUPTED = "KeyboardInterrupt"


class ClientGone(Exception):
    """Nobody takes the answers any more."""


class CannotAsk(RvtraceError):
    """Nobody waits for an answer of ours, so that nobody can be asked anything."""

    def __init__(self) -> None:
        super().__init__(
            "this needs gdb, which waits for its target now: use rvtrace's commands (`trace goto`, `trace history`)"
        )


class NotDone(RvtraceError):
    """The client could not do what it was asked. *kind*: its class of the error."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class Asking:
    """The questions of one server. *send*: a line to the client; *gone*: it sends nothing any more."""

    def __init__(self, lock: threading.RLock, send: Callable[[Message], None], gone: Callable[[], bool]) -> None:
        self._changed = threading.Condition(lock)
        self._send, self._gone = send, gone
        self._number: object = None
        self._worker: int | None = None
        self._question = 0
        self._expects = False
        self._answer: Message | None = None

    def begin(self, number: object) -> None:
        """This thread begins to work on the client's request *number*."""
        self._number, self._worker = number, threading.get_ident()

    def end(self) -> None:
        """Nothing is worked on any more."""
        self._number = None

    def ask(self, need: Message) -> Any:
        """What the client found, or did. Raises CannotAsk, NotDone, Cancelled, ClientGone.

        The session's lock, held or not, is free meanwhile: what gdb does may lead through the proxy, which takes it.
        """
        if self._number is None or self._worker != threading.get_ident():
            raise CannotAsk
        with self._changed:
            self._question += 1
            self._answer, self._expects = None, True
            try:
                self._send({"id": self._number, "need": need, "question": self._question})
                self._changed.wait_for(self._has_answer_or_none)
            finally:
                self._expects = False
            return self._result()

    def _has_answer_or_none(self) -> bool:
        return self._answer is not None or self._gone()

    def _result(self) -> Any:
        if self._answer is None:
            raise ClientGone
        return _result(self._answer)

    def answered(self, message: Message) -> None:
        """The client has answered; nobody may have asked. For the thread that reads what it sends."""
        if self._expects and message.get("question") == self._question:
            with self._changed:
                self._answer = message
                self._changed.notify_all()

    def given_up(self) -> None:
        """The client will not answer what it was asked. For the thread that reads what it sends."""
        if self._expects:
            self.answered({"question": self._question, "error": {"message": "interrupted", "kind": _INTERRUPTED}})

    def wake(self) -> None:
        """The client may be gone. For the thread that reads what it sends."""
        if self._expects:
            with self._changed:
                self._changed.notify_all()


def _result(answer: Message) -> Any:
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    if not isinstance(error, dict):
        raise NotDone(f"{error!r}", "")
    message, kind = str(error.get("message")), str(error.get("kind"))
    raise Cancelled if kind == _INTERRUPTED else NotDone(" ".join(message.split()), kind)
