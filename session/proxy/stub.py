"""The side of the stub: what it was asked and has not answered yet, and questions of our own to it."""

import select
import socket
import time
from collections import deque
from collections.abc import Callable

from rvtrace_gdb.session.proxy.errors import StubAbsent, StubGone
from rvtrace_gdb.session.proxy.packets import Item, Kind, frame, unescape
from rvtrace_gdb.session.proxy.shared import Shared
from rvtrace_gdb.session.proxy.wire import Wire, WireGone
from rvtrace_gdb.support.system import is_refusal
from rvtrace_gdb.support.text import why_not

ANSWER_SECONDS = 20.0  # gdb itself waits 2 seconds, three times; a slow adapter takes its time
CONNECT_SECONDS = 5.0


class Stub:
    """A connection to the stub. Every method raises StubGone when it ends.

    asked    the packets of gdb that are to be answered yet, oldest first
    running  the last of these resumed the target
    heard    it has said anything: else it took the connection, but may not serve it
    """

    def __init__(self, shared: Shared, connection: socket.socket, where: tuple[str, int]) -> None:
        self._shared, self._where = shared, where
        self.wire = Wire(connection)
        self.asked: deque[bytes] = deque()
        self.running = self.heard = False
        self._arrived: deque[Item] = deque()
        self.write(b"+")  # as gdb begins: OpenOCD 0.12 serves nobody until a new connection has sent something

    @classmethod
    def connect(cls, shared: Shared, where: tuple[str, int]) -> "Stub":
        """Raises StubAbsent, StubGone."""
        try:
            connection = socket.create_connection(where, CONNECT_SECONDS)
        except (OSError, OverflowError, ValueError) as error:
            if isinstance(error, OSError) and is_refusal(error):
                raise  # it is not the stub that is missing
            raise StubAbsent(*where, why_not(error)) from error
        return cls(shared, connection, where)

    def is_alive(self) -> bool:
        """Before it is used: it was not closed while nobody looked."""
        try:
            self.receive()
        except StubGone:
            return False
        return True

    def close(self) -> None:
        self.wire.close()

    def gone(self, why: str | None) -> StubGone:
        return StubGone(*self._where) if why is None else StubGone(*self._where, f"is lost: {why}")

    def write(self, data: bytes) -> None:
        """As they are: an interrupt."""
        try:
            self.wire.write(data)
        except WireGone as error:
            raise self.gone(error.why) from error

    def ask(self, body: bytes, raw: bytes | None = None) -> None:
        """A packet whose answer comes later. *raw*: it in its frame."""
        self.tell(frame(body) if raw is None else raw)
        self.asked.append(body)

    def tell(self, raw: bytes) -> None:
        """A packet in its frame that has no answer."""
        try:
            self.wire.send(raw)
        except WireGone as error:
            raise self.gone(error.why) from error

    def flush(self) -> None:
        try:
            self.wire.flush()
        except WireGone as error:
            raise self.gone(error.why) from error

    def settle(self) -> None:
        """Acknowledges what is not acknowledged yet."""
        try:
            self.wire.settle()
        except WireGone as error:
            raise self.gone(error.why) from error

    def receive(self) -> None:
        """What is there now; `next` has it."""
        try:
            items = self.wire.receive()
        except WireGone as error:
            raise self.gone(error.why) from error
        self.heard = self.heard or bool(items)
        self._arrived += items

    def next(self) -> Item | None:
        """The oldest that was received and not looked at."""
        return self._arrived.popleft() if self._arrived else None

    def transact(self, body: bytes, other: Callable[[Item], None]) -> bytes:
        """The answer to a packet of ours, unescaped. *other* gets what comes before it and is none."""
        try:
            return unescape(self.transact_all([body], other)[0])
        except ValueError:
            return b"E01"

    def transact_all(self, bodies: list[bytes], other: Callable[[Item], None]) -> list[bytes]:
        """The answers to several packets, which are sent without waiting in between; they are still escaped."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.asked:
            other(self._wait(deadline, bodies[0]))
        try:
            self.wire.send_all(bodies)
        except WireGone as error:
            raise self.gone(error.why) from error
        answers: list[bytes] = []
        while len(answers) < len(bodies):
            item = self._wait(deadline, bodies[len(answers)])
            if item.kind is Kind.PACKET and (item.body[:1] != b"O" or item.body == b"OK"):
                answers.append(item.body)
                deadline = time.monotonic() + ANSWER_SECONDS
            else:
                other(item)
        return answers

    def _wait(self, deadline: float, body: bytes) -> Item:
        while (item := self.next()) is None:
            self.settle()
            left = deadline - time.monotonic()
            if left <= 0 or self._shared.closing.is_set():
                raise self.gone(f"no answer to {body[:40].decode(errors='replace')!r}")
            writers = [self.wire] if self.wire.unsent else []
            readers: list[Wire | socket.socket] = [self.wire, self._shared.wake]
            readable, writable, _ = select.select(readers, writers, [], left)
            if writable:
                self.flush()
            if self.wire in readable:
                self.receive()
        return item
