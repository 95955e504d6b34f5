"""Routes the packets of one gdb, from its connection to its end: to the live target, or to the past.

gdb and the stub take turns: gdb sends a packet and waits for the answer, so this thread may wait for the stub in
between.
"""

import select
import socket
import time
from contextlib import suppress

from rvtrace_gdb.session.proxy.caretaker import OF_FRAMES, Caretaker
from rvtrace_gdb.session.proxy.clients.editor_steps import EditorSteps
from rvtrace_gdb.session.proxy.clients.lldb import is_from_lldb, thread_stop
from rvtrace_gdb.session.proxy.connection import Connection, ConnectionEnded, StubConnection, StubGone
from rvtrace_gdb.session.proxy.live_target import LiveTarget
from rvtrace_gdb.session.proxy.protocol.packets import THREAD_LIST_QUERIES
from rvtrace_gdb.session.proxy.protocol.wire import MUCH, NO_ADDRESS, GdbPacket, GdbPacketKind, Wire, WireGone, unescape
from rvtrace_gdb.session.proxy.proxy_state import ProxyMode, ProxyState
from rvtrace_gdb.session.proxy.replay_target import ReplayTarget
from rvtrace_gdb.session.proxy.stepping import Stepper
from rvtrace_gdb.support.errors import RvtraceError

_SILENT_SECONDS = 8.0  # until a peer that has sent nothing is taken for no stub; OpenOCD may probe flash first
_SECOND_CLIENT_SECONDS = 0.5  # until it is refused: it may be this gdb, whose earlier end has not been read yet
_SEVERAL_WATCHPOINTS = b"multi-wp-addr+"  # in one stop reply; gdb 17 and later: General Query Packets, qSupported
_Side = Wire | socket.socket


class Router:
    """The router for one gdb, which is at the other end of *wire*. *stub*: None if there is none."""

    def __init__(self, state: ProxyState, wire: Wire, stub: StubConnection | None) -> None:
        self._state, self._wire = state, wire
        self._gdb = Connection(state, wire, stub, lambda item: self._live.reply(item))
        self._stepper = Stepper(self._gdb)
        self._editor_steps = EditorSteps(self._gdb)
        self._live = LiveTarget(self._gdb, self._stepper)
        self._replay = ReplayTarget(self._gdb, self._stepper, self._live)
        self._stub_deadline = 0.0  # until then a stub must have sent something
        self._second_client_at: float | None = None  # when another gdb connected
        self._caretaker = Caretaker(wire.connection)

    def run(self) -> None:
        """Serve gdb until it disconnects or the proxy closes. Then leave the past, and remove gdb's breakpoints from
        the stub.
        """
        try:
            self._state.present.shown()  # what another gdb has left is not for this one
            self._note_features(b"")
            self._replay.begin()
            self._state.connection = self._gdb
            while not self._state.shutdown.requested:
                self._turn()
        except (WireGone, ConnectionEnded):
            pass
        finally:
            self._state.connection = None
            self._state.exchange.take_jump()  # it was for this gdb
            with self._state.setup.lock:
                self._state.setup.past.leave()
            self._gdb.close()
            self._caretaker.dismiss()

    # One turn

    def _turn(self) -> None:
        """Wait for either side, and handle what it sent."""
        gdb, wire = self._gdb, self._wire
        readable, writable = self._ready_sides()
        if self._seconds_for_stub() == 0:
            gdb.lose_stub(StubGone(self._state.setup.stub_address or NO_ADDRESS), again=False)
        if wire in writable:
            wire.flush()
        stub = gdb.stub
        if stub is not None:
            self._turn_to_stub(stub, read=stub.wire in readable, write=stub.wire in writable)
        if self._state.calls.wake in readable:
            self._do_calls()
        if wire in readable:
            self._caretaker.note_unanswered(wire.packet_to_come() or self._newest_unanswered())
            gdb.arrived += wire.receive()
        while gdb.arrived:
            self._forward_item(gdb.arrived.popleft())
        wire.settle()
        if gdb.stub is not None:
            try:
                gdb.stub.wire.settle()
            except StubGone as error:
                gdb.lose_stub(error)
        self._caretaker.note_unanswered(self._newest_unanswered())
        self._refuse_second_client(has_connected=self._state.listener in readable)

    def _do_calls(self) -> None:
        """Do what other threads want of the stub."""
        try:
            self._state.calls.run(self._gdb)
        except StubGone as error:
            self._gdb.lose_stub(error)

    def _newest_unanswered(self) -> bytes:
        """Return the newest packet of gdb that the stub has not answered yet, b"" if there is none."""
        stub = self._gdb.stub
        return stub.unanswered[-1] if stub is not None and stub.unanswered else b""

    def _ready_sides(self) -> tuple[list[_Side], list[_Side]]:
        """Return the sides that can be read, and those that can be written."""
        wire, stub = self._wire, self._gdb.stub
        readers: list[_Side] = [self._state.shutdown.wake, self._state.calls.wake]
        if stub is not None and wire.unsent < MUCH:
            readers.append(stub.wire)
        if stub is None or stub.wire.unsent < MUCH:
            readers.append(wire)
        if self._state.listener is not None and self._second_client_at is None:
            readers.append(self._state.listener)
        writers: list[_Side] = [side for side in (wire, stub.wire if stub else wire) if side.unsent]
        readable, writable, _ = select.select(readers, writers, [], self._select_timeout())
        return readable, writable

    def _refuse_second_client(self, *, has_connected: bool) -> None:
        """Refuse a second gdb, which would wait in vain."""
        listener, now = self._state.listener, time.monotonic()
        if has_connected:
            self._second_client_at = now
        if listener is None or self._second_client_at is None or now < self._second_client_at + _SECOND_CLIENT_SECONDS:
            return
        self._second_client_at = None
        with suppress(OSError), listener.accept()[0]:
            self._state.exchange.say("another gdb was refused: this one is connected")

    def _select_timeout(self) -> float | None:
        """Return the seconds until something must be done without any packet, None: no such limit."""
        for_stub = self._seconds_for_stub()
        if self._second_client_at is None:
            return for_stub
        until_refusal = max(0.0, self._second_client_at + _SECOND_CLIENT_SECONDS - time.monotonic())
        return until_refusal if for_stub is None else min(for_stub, until_refusal)

    def _seconds_for_stub(self) -> float | None:
        """Return the seconds until a stub that has sent nothing yet is given up, None: no such limit."""
        stub = self._gdb.stub
        if stub is None or stub.has_spoken or not stub.unanswered:
            self._stub_deadline = time.monotonic() + _SILENT_SECONDS
            return None
        return max(0.0, self._stub_deadline - time.monotonic())

    def _turn_to_stub(self, stub: StubConnection, *, read: bool, write: bool) -> None:
        try:
            if write:
                stub.wire.flush()
            if read:
                stub.receive()
            while (item := stub.next()) is not None:
                self._live.reply(item)
        except StubGone as error:
            self._gdb.lose_stub(error)

    # One item of gdb

    def _forward_item(self, item: GdbPacket) -> None:
        if item.kind is GdbPacketKind.PACKET:
            self._caretaker.note_unanswered(item.body)
            if self._state.exchange.take_shown():
                self._state.present.shown()
                self._stepper.user_sees()
            while not self._is_routed(item):
                pass
        elif item.kind is GdbPacketKind.INTERRUPT:
            stub = self._gdb.stub
            if stub is not None and self._state.mode() is not ProxyMode.PAST:
                stub.wire.write(item.raw)
            else:  # between two of many short movements, as at a breakpoint whose condition is false
                self._state.present.is_interrupted = True

    def _is_routed(self, item: GdbPacket) -> bool:
        """Route a packet. False: the stub was lost, and the packet must be routed again.

        Raises StubGone if there was no stub.
        """
        stub = self._gdb.stub
        try:
            self._route(item)
        except StubGone as error:
            if stub is None:
                raise
            self._gdb.lose_stub(error)
            return False
        return True

    def _route(self, item: GdbPacket) -> None:
        body, mode = item.body, self._state.mode()
        self._gdb.is_lldb = self._gdb.is_lldb or is_from_lldb(body)
        self._editor_steps.begins(body)
        if body.startswith(b"qSupported"):
            self._note_features(body)
        if body.startswith(THREAD_LIST_QUERIES):
            self._stepper.user_sees()
            if self._state.setup.tell is not None:  # nobody else says that a stop is shown
                self._state.present.shown()
        if mode is ProxyMode.ENDED:  # gdb 13 and 16 crash when the connection ends while they compute frames
            if body[:1] not in OF_FRAMES:
                raise ConnectionEnded
            self._gdb.send(b"E01")
            return
        if body[:1] == b"T":
            self._gdb.threads.asked_about(body[1:])
        if (body[:1] in (b"q", b"Q") or body.startswith(b"vFile:")) and self._answers(body):
            return
        if mode is ProxyMode.PAST:
            self._replay.take(item)
        else:
            self._live.take(item)
        self._editor_steps.ends()

    def _note_features(self, offer: bytes) -> None:
        """Note what gdb says of itself in qSupported."""
        with self._gdb.lock:
            self._gdb.past.takes_several = _SEVERAL_WATCHPOINTS in offer.partition(b":")[2].split(b";")

    def _answers(self, body: bytes) -> bool:
        """Answer a query with the description of the target, or as an extension does. False: neither does."""
        if body.startswith(b"qRcmd,"):
            self._state.present.take_interruption()  # what was sent before the command does not end it
        stop = thread_stop(body, self._gdb.threads.last_stopped) if self._gdb.is_lldb else None
        if stop is not None:
            self._gdb.send(stop)
            return True
        description = self._gdb.descriptions.part(body)
        if description is not None:
            self._gdb.send(description)
            return True
        try:
            answer = self._gdb.extended(unescape(body))
        except ValueError:
            return False  # the packet is malformed
        except StubGone:
            raise
        except RvtraceError as error:
            self._state.exchange.say(str(error))
            answer = f"E.{error}".encode()
        if answer is not None:
            self._gdb.send_data(answer)
        return answer is not None
