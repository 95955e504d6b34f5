"""Calls from other threads into the proxy's, which alone uses gdb's connection and the stub's.

A call waits until the proxy is between two packets of gdb. If it does not come to that soon, because it waits for the
session's lock, which the caller may hold, the call is withdrawn.
"""

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from rvtrace_gdb.session.proxy.backend import HartExtensionContext

T = TypeVar("T")
_SOON = 1.0  # seconds until a call begins
_LONG = 60.0  # seconds until it ends: the stub may take its time


class _Call:
    """A call. *taken*: by the proxy, or by the caller, who no longer waits."""

    def __init__(self, work: Callable[[HartExtensionContext], object]) -> None:
        self.work = work
        self.result: object = None
        self.taken, self.begun, self.done = threading.Lock(), threading.Event(), threading.Event()


class WaitingCalls:
    """The calls that wait, once it is open. *wake* becomes readable when there is one."""

    def __init__(self) -> None:
        self._waiting: deque[_Call] = deque()

    def open(self) -> None:
        self.wake, self._signal = socket.socketpair()
        self.wake.setblocking(False)
        self._signal.setblocking(False)

    def call(self, work: Callable[[HartExtensionContext], T]) -> T | None:
        """Return the result of *work*, called in the proxy's thread; None if that is not possible now, or if it fails.

        The caller must not be the proxy's thread.
        """
        call = _Call(work)
        self._waiting.append(call)
        with suppress(OSError):  # enough signals are there already
            self._signal.send(b"!")
        if not call.begun.wait(_SOON) and call.taken.acquire(blocking=False):
            return None
        call.done.wait(_LONG)
        return call.result  # type: ignore[return-value]

    def run(self, connection: HartExtensionContext) -> None:
        """Do the calls that wait. Raises what they raise: the stub may be gone."""
        with suppress(OSError):
            self.wake.recv(4096)
        while self._waiting:
            call = self._waiting.popleft()
            if not call.taken.acquire(blocking=False):
                continue
            call.begun.set()
            try:
                call.result = call.work(connection)
            finally:
                call.done.set()

    def close(self) -> None:
        self.wake.close()
        self._signal.close()
