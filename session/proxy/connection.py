"""The connection of one gdb through the proxy to the stub: what passes in either direction, and what each side has set.

`StubConnection` is a connection to the stub: the packets of gdb that it has not answered yet, and packets of the
proxy's own. `Connection` joins it with gdb's. It is what extensions use (`ExtensionContext`).
"""

import logging
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from rvtrace_gdb.session.proxy.caretaker import OF_FRAMES
from rvtrace_gdb.session.proxy.protocol.packets import Breakpoints, Threads
from rvtrace_gdb.session.proxy.protocol.register_numbers import packets_of, values_in
from rvtrace_gdb.session.proxy.protocol.target_xml import TargetDescriptions
from rvtrace_gdb.session.proxy.protocol.wire import (
    MUCH,
    NO_ADDRESS,
    GdbPacket,
    GdbPacketKind,
    Shutdown,
    StubAddress,
    Wire,
    WireGone,
    escape,
    frame,
    unescape,
)
from rvtrace_gdb.session.proxy.proxy_state import ProxyState, TargetState
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.system import is_refusal
from rvtrace_gdb.support.text import open_problem

log = logging.getLogger("rvtrace.session")


class ConnectionEnded(Exception):
    """Nothing more is to be sent to this gdb."""


class StubAbsent(RvtraceError):
    """No stub answers at an address."""

    def __init__(self, address: StubAddress, why: str) -> None:
        super().__init__(
            f"no OpenOCD and no other gdb stub at {address.text}: {why} (start it first; another place:"
            " `trace connect HOST:PORT`)"
        )
        self.address, self.why = address, why


class StubGone(RvtraceError):
    """The stub ended the connection, or does not answer any more."""

    def __init__(self, address: StubAddress, why: str = "closed the connection") -> None:
        super().__init__(f"OpenOCD ({address.text}) {why}; what was traced is kept: `trace history`, `trace save`")
        self.address = address


ANSWER_SECONDS = 20.0  # gdb itself waits 2 seconds, three times; a slow adapter takes its time
CONNECT_SECONDS = 5.0


def _unix(path: str) -> socket.socket:
    """Return a connection to a unix socket. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(CONNECT_SECONDS)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


class StubConnection:
    """A connection to the stub. Its methods and those of its wire raise StubGone when it ends.

    unanswered   the packets of gdb that have no answer yet, oldest first
    has_spoken   it has sent something: before that it has accepted the connection, but may not serve it
    """

    def __init__(self, shutdown: Shutdown, connection: socket.socket, address: StubAddress) -> None:
        self._shutdown, self._address = shutdown, address
        self.wire = Wire(connection, self.gone)
        self.unanswered: deque[bytes] = deque()
        self.has_spoken = False
        self._arrived: deque[GdbPacket] = deque()
        self.wire.write(b"+")  # as gdb begins: OpenOCD 0.12 serves nobody until a new connection has sent something

    @classmethod
    def connect(cls, shutdown: Shutdown, address: StubAddress) -> "StubConnection":
        """Connect to the stub. Raises StubAbsent, StubGone."""
        try:
            connection = _unix(address.host) if not address.port else socket.create_connection(address, CONNECT_SECONDS)
        except (OSError, OverflowError, ValueError) as error:
            if isinstance(error, OSError) and is_refusal(error):
                raise  # the stub is not what is missing
            raise StubAbsent(address, open_problem(error)) from error
        return cls(shutdown, connection, address)

    def is_alive(self) -> bool:
        """Return whether the connection is still open, before it is used."""
        try:
            self.receive()
        except StubGone:
            return False
        return True

    def gone(self, why: str | None) -> StubGone:
        return StubGone(self._address) if why is None else StubGone(self._address, f"is lost: {why}")

    def ask(self, body: bytes, raw: bytes | None = None) -> None:
        """Send a packet whose answer comes later. *raw*: the same packet in its frame."""
        self.wire.send(frame(body) if raw is None else raw)
        self.unanswered.append(body)

    def receive(self) -> None:
        """Receive what has arrived, for `next`."""
        items = self.wire.receive()
        self.has_spoken = self.has_spoken or bool(items)
        self._arrived += items

    def next(self) -> GdbPacket | None:
        """Return the oldest item that was received and not returned yet."""
        return self._arrived.popleft() if self._arrived else None

    def transact(self, body: bytes, other: Callable[[GdbPacket], None]) -> bytes:
        """Return the answer to a packet of the proxy's own, unescaped. *other* takes items before it that are no
        answer.
        """
        try:
            return unescape(self.transact_all([body], other)[0])
        except ValueError:
            return b"E01"

    def transact_all(self, bodies: list[bytes], other: Callable[[GdbPacket], None]) -> list[bytes]:
        """Return the answers to several packets, which are sent without waiting in between; they are still escaped."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.unanswered:
            other(self._wait_for_packet(deadline, bodies[0]))
        self.wire.send_all(bodies)
        answers: list[bytes] = []
        while len(answers) < len(bodies):
            item = self._wait_for_packet(deadline, bodies[len(answers)])
            if item.kind is GdbPacketKind.PACKET and (item.body[:1] != b"O" or item.body == b"OK"):
                answers.append(item.body)
                deadline = time.monotonic() + ANSWER_SECONDS
            else:
                other(item)
        return answers

    def _wait_for_packet(self, deadline: float, body: bytes) -> GdbPacket:
        while (item := self.next()) is None:
            self.wire.settle()
            left = deadline - time.monotonic()
            if left <= 0 or self._shutdown.requested:
                raise self.gone(f"no answer to {body[:40].decode(errors='replace')!r}")
            writers = [self.wire] if self.wire.unsent else []
            readers: list[Wire | socket.socket] = [self.wire, self._shutdown.wake]
            readable, writable, _ = select.select(readers, writers, [], left)
            if writable:
                self.wire.flush()
            if self.wire in readable:
                self.receive()
        return item


_ATTEMPTS = 20  # attempts to connect to a stub that ends the connection before it has sent anything
_AGAIN_SECONDS = 0.1
_NO_STUB = "what is there does not speak gdb's protocol"


class Connection:
    """The connection of one gdb. *stub*: None if there is none, or none any more.

    *take_item* gets the items of the stub that are not answers to the proxy's own packets.
    """

    def __init__(
        self, state: ProxyState, wire: Wire, stub: StubConnection | None, take_item: Callable[[GdbPacket], None]
    ) -> None:
        self.state, self.wire, self.stub, self._take_item = state, wire, stub, take_item
        self.past, self.lock = state.setup.past, state.setup.lock
        self.threads = Threads(state.setup.hart_of)
        self.breakpoints = Breakpoints()
        self.descriptions = TargetDescriptions(state, self.threads, self.transact)
        self.non_stop = self.is_lldb = False
        self.is_quiet = False
        """Whether the client would take a line for the answer to its packet."""
        self.arrived: deque[GdbPacket] = deque()  # from gdb, and not handled yet
        self._attempts = _ATTEMPTS

    @property
    def hart(self) -> int | None:
        return self.threads.hart(self.threads.current)

    @property
    def breakpoint_addresses(self) -> frozenset[int]:
        return self.breakpoints.addresses()

    # To and from gdb

    def send(self, body: bytes) -> None:
        """Send gdb an answer that needs no escapes."""
        self.wire.send(frame(body))

    def send_data(self, data: bytes) -> None:
        """Send gdb an answer of any bytes."""
        self.wire.send(frame(escape(data)))

    def print(self, line: str) -> None:
        """Print a line on gdb's console while gdb waits for a stop, when gdb has taken most of those before.

        Where it cannot be printed now, it comes with the next stop.
        """
        if self.is_quiet:
            self.say(line)
            return
        self.send(b"O" + f"{self.state.setup.worded(line)}\n".encode().hex().encode())
        while self.wire.unsent > MUCH and not self.state.shutdown.requested:
            select.select([self.state.shutdown.wake], [self.wire], [])
            self.wire.flush()

    def say(self, line: str) -> None:
        self.state.exchange.say(line)

    def is_interrupted(self) -> bool:
        """Return whether gdb sent Ctrl-C or disconnected, while something is worked on for it."""
        if self.state.shutdown.requested:
            return True
        try:
            if self.wire.unsent:
                self.wire.flush()
            if select.select([self.wire], [], [], 0)[0]:
                self.arrived += self.wire.receive()
        except WireGone:
            return True
        return self._takes_interruption()

    def _takes_interruption(self) -> bool:
        """Return whether gdb sent Ctrl-C, and forget it."""
        found = [item for item in self.arrived if item.kind is GdbPacketKind.INTERRUPT]
        for item in found:
            self.arrived.remove(item)
        earlier = self.state.present.take_interruption()
        return bool(found) or earlier

    def is_unheard(self) -> bool:
        """Return whether gdb sent Ctrl-C, or another packet: then it does not wait for this answer any more.

        gdb sends nothing for Ctrl-C in a monitor command, and reads no more of its answer. Before its next packet is
        acknowledged, gdb skips what comes (remote.c: putpkt_binary), so that packet is left where it is.
        """
        try:
            if self.wire.unsent:
                self.wire.flush()
            if self.state.shutdown.requested:
                return True
            if select.select([self.wire], [], [], 0)[0]:
                came = self.wire.to_come()  # looked at after that, or what arrives in between would be received
                if b"$" in came:
                    return True
                self.arrived += self.wire.receive(max(len(came), 1))  # nothing: gdb has disconnected
        except WireGone:
            return True
        return self._takes_interruption()

    # To and from the stub

    def live(self) -> bool:
        return self.state.target.is_halted()

    def transact(self, packet: bytes) -> bytes:
        return self.selected_stub(self.threads.general).transact(escape(packet), self._take_item)

    def transact_all(self, packets: list[bytes], hart: int | None = None) -> list[bytes]:
        stub = self.selected_stub(self.threads.general if hart is None else self.threads.of_hart(hart))
        answers = stub.transact_all([escape(packet) for packet in packets], self._take_item)
        return [_unescaped(answer) for answer in answers]

    def reaches(self, hart: int, *, alone: bool) -> bool:
        found = self.threads.hart(self.threads.of_hart(hart))
        return found == hart or (found is None and alone)

    def registers(self, hart: int) -> dict[int, int]:
        description = self.descriptions.current()
        return values_in(description, self.transact_all(packets_of(description), hart))

    def monitor(self, command: str) -> str:
        output: list[bytes] = []

        def collect(item: GdbPacket) -> None:
            if item.kind is GdbPacketKind.PACKET and item.body[:1] == b"O":
                output.append(item.body[1:])
            else:
                self._take_item(item)

        stub = self.selected_stub(self.threads.general)
        last = stub.transact(b"qRcmd," + command.encode().hex().encode(), collect)
        return "".join(_hex_text(part) for part in [*output, b"" if last == b"OK" else last])

    def live_pc(self) -> int | None:
        pc = self.descriptions.current().by_name.get("pc")
        answer = self.transact(b"p%x" % pc.number) if pc else b""
        try:
            return int.from_bytes(bytes.fromhex(answer.decode()), "little") if answer else None
        except ValueError:
            return None

    def extended(self, packet: bytes) -> bytes | None:
        for extension in self.state.setup.extensions:
            if packet.startswith(extension.prefixes):
                answer = extension.answer(packet, self)
                if answer is not None:
                    return answer
        return None

    def selected_stub(self, thread: str | None) -> StubConnection:
        """Return the stub, in which *thread* is selected unless the target runs. Raises StubGone.

        gdb selects the thread of a stop, and the stub does not see stops in the past.
        """
        self.wire.settle()
        if self.stub is None:
            raise StubGone(self.state.setup.stub_address or NO_ADDRESS)
        if thread != self.threads.of_stub and self.state.target.state is not TargetState.RUNNING:
            answer = self.stub.transact(b"Hg" + (thread or "0").encode(), self._take_item)
            if answer != b"OK" and thread is not None:
                log.warning("the stub knows no thread %s: %r", thread, answer)
            self.threads.of_stub = thread
        return self.stub

    def lose_stub(self, error: StubGone, *, again: bool = True) -> None:
        """Continue without the stub, which is possible in the past. Raises ConnectionEnded in the present.

        *again*: whether to try to connect again to a stub that has sent nothing yet.
        """
        stub, self.stub = self.stub, None
        if stub is None:
            return
        stub.wire.close()
        if not stub.has_spoken and again and self._connect_again(stub):
            return
        released = self.state.target.state is TargetState.RELEASED
        self.state.target.lost()
        self.breakpoints.stub_lost()
        if not released:
            reported = error if stub.has_spoken else StubAbsent(error.address, _NO_STUB)
            log.warning("%s", reported)
            self.say(str(reported))
        may_end = released or any(body[:1] not in OF_FRAMES for body in stub.unanswered)
        if may_end and not self.state.away():
            raise ConnectionEnded from error
        for _ in stub.unanswered:
            self.send(b"E01")

    def _connect_again(self, stub: StubConnection) -> bool:
        """Connect again: OpenOCD refuses a gdb as long as it has not noticed that the previous one has ended."""
        address = self.state.setup.stub_address
        while self._attempts and address is not None:
            self._attempts -= 1
            time.sleep(_AGAIN_SECONDS)
            try:
                self.stub = StubConnection.connect(self.state.shutdown, address)
                for body in stub.unanswered:
                    self.stub.ask(body)
            except RvtraceError:
                self.stub = None
                continue
            return True
        return False

    def close(self) -> None:
        """Remove gdb's breakpoints from the stub, and end the connection."""
        if self.stub is not None:
            with suppress(StubGone):
                if self.state.target.state in (TargetState.HALTED, TargetState.UNREADABLE):
                    self.breakpoints.remove_all(self.transact)
            self.stub.wire.close()
        self.wire.close()


def _hex_text(part: bytes) -> str:
    """Decode hexadecimal text."""
    try:
        return bytes.fromhex(part.decode()).decode(errors="replace")
    except ValueError:
        return ""


def _unescaped(answer: bytes) -> bytes:
    try:
        return unescape(answer)
    except ValueError:
        return b"E01"
