"""Routes the packets of one gdb, from its connection to its end: to the stub, or to the past.

The protocol is one of turns: gdb sends a packet and waits for the answer; so this thread may wait for the stub in
between.
"""

import contextlib
import logging
import select
import socket
import time
from collections import deque
from contextlib import AbstractContextManager

from rvtrace_gdb.session.replay.backend import ReplayBackend
from rvtrace_gdb.session.replay.caretaker import OF_FRAMES, Caretaker
from rvtrace_gdb.session.replay.connection import (
    MUCH,
    Item,
    Kind,
    Stub,
    StubAbsent,
    StubGone,
    Wire,
    WireGone,
    escape,
    frame,
    unescape,
)
from rvtrace_gdb.session.replay.live_target import MEMORY, Breakpoints, LiveTarget, MemorySplitter, join_answers
from rvtrace_gdb.session.replay.proxy_state import THREAD_LIST_QUERIES, ProxyState, Threads
from rvtrace_gdb.session.replay.replay_target import ReplayTarget
from rvtrace_gdb.session.replay.stepping import Stepper
from rvtrace_gdb.session.replay.target_xml import TargetDescriptions
from rvtrace_gdb.support.errors import RvtraceError

_ATTEMPTS = 20  # attempts to connect to a stub that ends the connection before it has sent anything
_AGAIN_SECONDS = 0.1
_SILENCE_SECONDS = 8.0  # until a peer that has sent nothing is taken for no stub; OpenOCD may probe flash first
_KNOCKING_SECONDS = 0.5  # another connection may be this gdb's own next one, if its end has not been read yet
_NO_STUB = "what is there does not speak gdb's protocol"
_Side = Wire | socket.socket
log = logging.getLogger("rvtrace.session")


class ConnectionEnded(Exception):
    """Nothing more is to be sent to this gdb."""


class Router:
    """The router for one gdb. *stub*: None if there is none, or none any more. It is the `ExtensionContext` of
    extensions.
    """

    def __init__(self, shared: ProxyState, gdb: Wire, stub: Stub | None) -> None:
        self.shared, self.gdb, self.stub = shared, gdb, stub
        self.threads = Threads(shared.hart_of)
        self.breakpoints = Breakpoints()
        self.descriptions = TargetDescriptions(self)
        self.pieces = MemorySplitter()
        self.non_stop = False
        self._lost: StubGone | None = None  # the error with which the stub was lost
        self.leaving = False  # gdb ended the target or detached: it is no loss when the stub ends the connection
        self.walk = Stepper(self)
        self._present, self._replay = LiveTarget(self), ReplayTarget(self)
        self._arrived: deque[Item] = deque()
        self._attempts = _ATTEMPTS
        self._silent_until = 0.0
        self._knocked: float | None = None  # when another gdb connected

    def run(self) -> None:
        """Serve gdb until it disconnects or the proxy closes. Then leave the past, and remove gdb's breakpoints from
        the stub.
        """
        self._caretaker = Caretaker(self.gdb.connection)
        try:
            self._replay.begin()
            self.shared.asking = self
            while not self.shared.closing.is_set():
                self._turn()
        except (WireGone, ConnectionEnded):
            pass
        finally:
            self.shared.asking = None
            self._end()

    # One turn

    def _turn(self) -> None:
        """Wait for either side, and handle what it sent."""
        stub, gdb = self.stub, self.gdb
        readable, writable = self._wait(stub)
        if self._silence() == 0:
            self._attempts = 0
            self.lose_stub(StubGone(*self.shared.where or ("", 0)))
        if gdb in writable:
            gdb.flush()
        if stub is not None:
            self._turn_to_stub(stub, read=stub.wire in readable, write=stub.wire in writable)
        if gdb in readable:
            self._caretaker.owes(gdb.packet_to_come() or self._owed())
            self._arrived += gdb.receive()
        while self._arrived:
            self._take(self._arrived.popleft())
        gdb.settle()
        if self.stub is not None:
            self._settle(self.stub)
        self._caretaker.owes(self._owed())
        self._refuse_others(knocks=self.shared.listener in readable)

    def _owed(self) -> bytes:
        """Return the newest packet of gdb that the stub has not answered yet, b"" if there is none."""
        return self.stub.asked[-1] if self.stub is not None and self.stub.asked else b""

    def _wait(self, stub: Stub | None) -> tuple[list[_Side], list[_Side]]:
        """Return the sides that can be read, and those that can be written."""
        gdb, readers = self.gdb, list[_Side]([self.shared.wake])
        if stub is not None and gdb.unsent < MUCH:
            readers.append(stub.wire)
        if stub is None or stub.wire.unsent < MUCH:
            readers.append(gdb)
        if self.shared.listener is not None and self._knocked is None:
            readers.append(self.shared.listener)
        writers: list[_Side] = [wire for wire in (gdb, stub.wire if stub else gdb) if wire.unsent]
        readable, writable, _ = select.select(readers, writers, [], self._patience())
        return readable, writable

    def _refuse_others(self, *, knocks: bool) -> None:
        """Refuse a second gdb, which would wait in vain."""
        listener, now = self.shared.listener, time.monotonic()
        if knocks:
            self._knocked = now
        if listener is None or self._knocked is None or now < self._knocked + _KNOCKING_SECONDS:
            return
        self._knocked = None
        with contextlib.suppress(OSError), listener.accept()[0]:
            self.shared.say("another gdb was refused: this one is connected")

    def _patience(self) -> float | None:
        """Return the seconds until something must be done without any packet, None: no such limit."""
        silence = self._silence()
        if self._knocked is None:
            return silence
        knocking = max(0.0, self._knocked + _KNOCKING_SECONDS - time.monotonic())
        return knocking if silence is None else min(silence, knocking)

    def _silence(self) -> float | None:
        """Return the seconds until a stub that has sent nothing yet is given up, None: no such limit."""
        stub = self.stub
        if stub is None or stub.heard or not stub.asked:
            self._silent_until = time.monotonic() + _SILENCE_SECONDS
            return None
        return max(0.0, self._silent_until - time.monotonic())

    def _settle(self, stub: Stub) -> None:
        try:
            stub.settle()
        except StubGone as error:
            self.lose_stub(error)

    def _turn_to_stub(self, stub: Stub, *, read: bool, write: bool) -> None:
        try:
            if write:
                stub.flush()
            if read:
                stub.receive()
            while (item := stub.next()) is not None:
                self._present.reply(item)
        except StubGone as error:
            self.lose_stub(error)

    def _take(self, item: Item) -> None:
        if item.kind is Kind.PACKET:
            self._caretaker.owes(item.body)
            while not self._routed(item):
                pass
        elif item.kind is Kind.INTERRUPT:
            if self.stub is not None and (self.stub.running or not self.away()):
                self.stub.write(item.raw)
            else:  # between two of many short movements, as at a breakpoint whose condition is false
                self.shared.interrupted = True

    def _routed(self, item: Item) -> bool:
        """Route a packet. False: the stub was lost, and the packet must be routed again. Raises StubGone if there was
        no stub.
        """
        stub = self.stub
        try:
            self._route(item)
        except StubGone as error:
            if stub is None:
                raise
            self.lose_stub(error)
            return False
        return True

    def _route(self, item: Item) -> None:
        if item.body.startswith(THREAD_LIST_QUERIES):
            self.walk.user_sees()
        if self._lost is not None and not self.away():
            self._take_without_present(item, self._lost)
        elif self.stub is None or (not self.stub.running and self.away()):
            self._replay.take(item)
        else:
            self._present.take(item)

    def _take_without_present(self, item: Item, why: StubGone) -> None:
        """Answer the packets with which gdb computes frames with errors, and end the connection at any other.

        gdb 13 and 16 crash when the connection ends while they compute frames.
        """
        if item.body[:1] not in OF_FRAMES:
            raise ConnectionEnded from why
        self.send(b"E01")

    def _end(self) -> None:
        with self.shared.lock:
            self.shared.past.leave()
        stub = self.stub
        if stub is not None:
            with contextlib.suppress(StubGone):
                if not stub.running and not self.leaving:
                    self.breakpoints.remove_all(self.transact)
            stub.close()
        self.gdb.close()
        self._caretaker.dismiss()

    # For the live target and the past

    def away(self) -> bool:
        """Return whether any hart is in the past."""
        with self.shared.lock:
            return self.shared.past.away()

    def says_present(self) -> bool:
        """Return whether there is a target that returned its registers when they were read last."""
        return self.stub is not None and not self.shared.unreadable

    def forward(self, item: Item) -> None:
        """Send a packet to the stub unchanged; the answer comes later."""
        assert self.stub is not None
        if self.threads.general != self.threads.of_stub:
            self._tell_thread(self.threads.general)
        pieces = self.pieces.of(item.body) if item.body[:1] in MEMORY and not self.stub.running else None
        if pieces is None:
            self.stub.ask(item.body, item.raw)
        else:
            self.send(join_answers(item.body, self.stub.transact_all(pieces, self._present.reply)))

    def in_present(self, body: bytes) -> None:
        """Handle a packet of gdb that leaves the past."""
        self._present.take(Item(Kind.PACKET, frame(body), body))

    def answered(self, body: bytes) -> bytes | None:
        """Return what the stub answered to this query before, still escaped, None if it was not asked."""
        return self._present.answered.get(body)

    def end(self) -> None:
        """End the conversation. Raises Ended."""
        raise ConnectionEnded

    def send(self, body: bytes) -> None:
        """Send gdb an answer that needs no escapes."""
        self.gdb.send_body(body)

    def send_data(self, data: bytes) -> None:
        """Send gdb an answer of any bytes."""
        self.gdb.send_body(escape(data))

    def tell(self, line: str) -> None:
        """Print a line on gdb's console while gdb waits for a stop."""
        self.send(b"O" + f"{line}\n".encode().hex().encode())

    def is_interrupted(self) -> bool:
        """Return whether gdb sent Ctrl-C or disconnected, while something is worked on for it."""
        if self.shared.closing.is_set():
            return True
        try:
            if self.gdb.unsent:
                self.gdb.flush()
            if select.select([self.gdb], [], [], 0)[0]:
                self._arrived += self.gdb.receive()
        except WireGone:
            return True
        found = [item for item in self._arrived if item.kind is Kind.INTERRUPT]
        for item in found:
            self._arrived.remove(item)
        earlier, self.shared.interrupted = self.shared.interrupted, False
        return bool(found) or earlier

    def lose_stub(self, error: StubGone) -> None:
        """Continue without the stub, which is possible in the past. Raises Ended in the present."""
        stub, self.stub = self.stub, None
        if stub is None:
            return
        stub.close()
        if not stub.heard and self._connect_again(stub):
            return
        self.shared.stub_lost = True
        self.breakpoints.stub_lost()
        if not self.leaving:
            told = error if stub.heard else StubAbsent(error.host, error.port, _NO_STUB)
            log.warning("%s", told)
            self.shared.say(str(told))
        self._lost = error
        if not self.away() and (self.leaving or any(body[:1] not in OF_FRAMES for body in stub.asked)):
            raise ConnectionEnded from error
        for _ in stub.asked:
            self.send(b"E01")

    def _connect_again(self, stub: Stub) -> bool:
        """Connect again: OpenOCD refuses a gdb as long as it has not noticed that the previous one has ended."""
        while self._attempts and self.shared.where:
            self._attempts -= 1
            time.sleep(_AGAIN_SECONDS)
            try:
                self.stub = Stub.connect(self.shared, self.shared.where)
                for body in stub.asked:
                    self.stub.ask(body)
            except RvtraceError:
                self.stub = None
                continue
            return True
        return False

    def extend(self, body: bytes) -> bool:
        """Answer a packet that an extension supports. False: none does, or the packet is malformed."""
        try:
            packet = unescape(body)
        except ValueError:
            return False
        try:
            answer = self.extended(packet)
        except StubGone:
            raise
        except RvtraceError as error:
            self.say(str(error))
            answer = f"E.{error}".encode()
        if answer is not None:
            self.send_data(answer)
        return answer is not None

    # For extensions: see `ExtensionContext`

    def extended(self, packet: bytes) -> bytes | None:
        for extension in self.shared.extensions:
            if packet.startswith(tuple(extension.prefixes)):
                answer = extension.answer(packet, self)
                if answer is not None:
                    return answer
        return None

    @property
    def past(self) -> ReplayBackend:
        return self.shared.past

    @property
    def lock(self) -> AbstractContextManager[object]:
        return self.shared.lock

    @property
    def thread(self) -> str | None:
        return self.threads.current

    @property
    def hart(self) -> int | None:
        return self.threads.hart(self.threads.current)

    def live(self) -> bool:
        return self.stub is not None and not self.stub.running

    def transact(self, packet: bytes) -> bytes:
        return self._stub_for(self.threads.general).transact(escape(packet), self._present.reply)

    def transact_all(self, packets: list[bytes], hart: int | None = None) -> list[bytes]:
        thread = self.threads.general if hart is None else self.threads.of_hart(hart)
        stub = self._stub_for(thread)
        answers = stub.transact_all([escape(packet) for packet in packets], self._present.reply)
        return [_unescaped(answer) for answer in answers]

    def monitor(self, command: str) -> str:
        said: list[bytes] = []

        def collect(item: Item) -> None:
            if item.kind is Kind.PACKET and item.body[:1] == b"O":
                said.append(item.body[1:])
            else:
                self._present.reply(item)

        last = self._stub_for(self.threads.general).transact(b"qRcmd," + command.encode().hex().encode(), collect)
        return "".join(_text(part) for part in [*said, b"" if last == b"OK" else last])

    def live_pc(self) -> int | None:
        pc = self.descriptions.current().by_name.get("pc")
        answer = self.transact(b"p%x" % pc.number) if pc else b""
        try:
            return int.from_bytes(bytes.fromhex(answer.decode()), "little") if answer else None
        except ValueError:
            return None

    def say(self, line: str) -> None:
        self.shared.say(line)

    def _stub_for(self, thread: str | None) -> Stub:
        """Return the stub, with *thread* selected. Raises StubGone."""
        self.gdb.settle()
        if self.stub is None:
            raise StubGone(*(self.shared.where or ("", 0)))
        if thread != self.threads.of_stub:
            self._tell_thread(thread)
        return self.stub

    def _tell_thread(self, thread: str | None) -> None:
        """Select a thread in the stub. gdb selects the thread of a stop, and the stub does not see
        stops in the past.
        """
        assert self.stub is not None
        if self.stub.running:
            return
        answer = self.stub.transact(b"Hg" + (thread or "0").encode(), self._present.reply)
        if answer != b"OK" and thread is not None:
            log.warning("the stub knows no thread %s: %r", thread, answer)
        self.threads.of_stub = thread


def _text(part: bytes) -> str:
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
