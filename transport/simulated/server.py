"""Serves a machine to OpenOCD (remote_bitbang) over a socket, lets its harts run in between, and has a backdoor.

One thread does both, so the order matters: a debugger sends one scan per memory word and waits for the answer. Were
the hart to run a slice after each, reading 64 KiB of a running target would take forty times as long. So the socket
is looked at first, and after traffic the hart waits a moment for more; but never so long that it starves.

The backdoor (`Backdoor`) bypasses JTAG over a unix socket: it reads big buffers fast, and causes events in trace
components. It reads the same bytes as a system bus access does, a thousand times faster. Its protocol, in
full:

    client: READ <address> <size>           decimal, or hexadecimal with 0x; size at most 16 MiB
    server: OK <size>                       followed by <size> raw bytes
        or: ERROR <what is wrong>           and the connection goes on
    client: OVERFLOW <encoder>              it loses trace once
            JAM <component>                 this sink, bridge or funnel takes nothing any more
            UNJAM <component>               it does again
            TRIGGER <encoder> <input>       an external trigger input fires
            POWER <hart> <ON or OFF>        the hart has power, or none
    server: OK 0                            done; nothing follows
        or: ERROR <what is wrong>

Any number of requests may follow one another, and be sent before the answers have come. Only memory (RAM) can be read,
not devices, so reading changes nothing. Components are called as in the target description. Any other line is answered
by ERROR. A line of more than 200 bytes ends the connection.
"""

import contextlib
import os
import select
import socket
import stat
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rvtrace_gdb.controlregs.sifive_v0.component_registers import XTI_CONTROL
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TRIG_EXT_IN_CONTROL
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.transport.simulated.assembly import AnyTraceEncoder
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.debug.jtag import TapPins
from rvtrace_gdb.transport.simulated.devices.component import TraceComponent
from rvtrace_gdb.transport.simulated.devices.encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.devices.output import TraceConsumer
from rvtrace_gdb.transport.simulated.machine import Machine

LARGEST = 16 << 20
_LONGEST_LINE = 200
_ANSWER_TIMEOUT = 10
_NONE: Mapping[str, TraceComponent] = {}
_DONE = b"OK 0\n"


class Backdoor:
    """The backdoor: answers the clients of *listener*, which the caller has to close; the owner polls `filenos`.

    *components*: the trace components by name. *switch_power*: switches the power of one of so many *harts*.
    """

    def __init__(
        self,
        bus: Bus,
        listener: socket.socket,
        components: Mapping[str, TraceComponent] = _NONE,
        harts: int = 0,
        switch_power: Callable[[int, bool], None] = lambda hart, on: None,
    ) -> None:
        self._bus = bus
        self._harts, self._switch_power = harts, switch_power
        self._components = components
        self._listener = listener
        self._clients: dict[int, tuple[socket.socket, bytearray]] = {}
        self._filenos = frozenset({listener.fileno()})

    def filenos(self) -> frozenset[int]:
        """Return the sockets to wait for."""
        return self._filenos

    def handle(self, fileno: int) -> None:
        """Process a socket that is ready."""
        if fileno == self._listener.fileno():
            client, _ = self._listener.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _ANSWER_TIMEOUT, 0))
            self._clients[client.fileno()] = client, bytearray()
        else:
            client, pending = self._clients[fileno]
            if not self._talk(client, pending):
                client.close()
                del self._clients[fileno]
        self._filenos = frozenset({self._listener.fileno(), *self._clients})

    def disconnect(self) -> None:
        """Close all clients."""
        for client, _ in self._clients.values():
            client.close()
        self._clients.clear()
        self._filenos = frozenset({self._listener.fileno()})

    def _talk(self, client: socket.socket, pending: bytearray) -> bool:
        """Read what has arrived and answer the complete lines in it. Return False when the connection is over."""
        try:
            data = client.recv(1 << 16)
            pending += data
            *lines, rest = pending.split(b"\n")
            pending[:] = rest
            for line in lines:
                client.sendall(self.answer(bytes(line)))
        except OSError:
            return False
        return bool(data) and len(pending) <= _LONGEST_LINE

    def answer(self, line: bytes) -> bytes:
        """Return the reply to one request line (without its newline)."""
        command, *words = line.decode("ascii", "replace").split() or [""]
        if command in ("OVERFLOW", "TRIGGER"):
            return self._disturb(command, words)
        if command in ("JAM", "UNJAM"):
            return self._jam(words, command == "JAM")
        if command == "POWER":
            return self._power(words)
        return self._read_memory(command, words)

    def _read_memory(self, command: str, words: list[str]) -> bytes:
        try:
            start, count = (int(word, 0) for word in words)
        except ValueError:
            return b"ERROR not understood; say READ <address> <size>\n"
        if command != "READ" or start < 0 or not 0 <= count <= LARGEST:
            return b"ERROR not understood; say READ <address> <size>, size at most %d\n" % LARGEST
        try:
            return b"OK %d\n" % count + self._bus.read_bytes(start, count)
        except BusError as error:
            return f"ERROR {error}\n".encode()

    def _disturb(self, command: str, words: list[str]) -> bytes:
        """Cause an event in an encoder."""
        encoder = self._components.get(words[0]) if words else None
        if not isinstance(encoder, AnyTraceEncoder):
            return _unknown_name(
                "encoder", [name for name, each in self._components.items() if isinstance(each, AnyTraceEncoder)]
            )
        if command == "OVERFLOW" and len(words) == 1:
            if encoder.enabled:
                encoder.overflow()
            return _DONE
        count = _trigger_inputs(encoder)
        number = int(words[1]) if len(words) == 2 and is_number(words[1]) else count
        if command == "TRIGGER" and number < count:
            encoder.external_trigger(number)
            return _DONE
        inputs = f"{words[0]} has {count} trigger inputs"
        return f"ERROR say OVERFLOW <encoder>, or TRIGGER <encoder> <input>; {inputs}\n".encode()

    def _power(self, words: list[str]) -> bytes:
        if len(words) != 2 or not is_number(words[0]) or int(words[0]) >= self._harts or words[1] not in ("ON", "OFF"):
            return f"ERROR say POWER <hart> ON, or OFF; there are {self._harts} harts\n".encode()
        self._switch_power(int(words[0]), words[1] == "ON")
        return _DONE

    def _jam(self, words: list[str], jammed: bool) -> bytes:
        component = self._components.get(words[0]) if len(words) == 1 else None
        if not isinstance(component, TraceConsumer):
            known = [name for name, each in self._components.items() if isinstance(each, TraceConsumer)]
            return _unknown_name("sink, bridge or funnel", known)
        component.jammed = jammed
        return _DONE


def _trigger_inputs(encoder: AnyTraceEncoder) -> int:
    """Return the number of trigger inputs: each has 4 bits in a register."""
    register = TRIG_EXT_IN_CONTROL if isinstance(encoder, TraceEncoder) else XTI_CONTROL
    return encoder.legal(register).bit_count() // 4


def _unknown_name(what: str, names: list[str]) -> bytes:
    return f"ERROR name one {what}: {', '.join(names) or 'there is none'}\n".encode()


_HEAD_START = 0.0002  # seconds the hart waits for the next scan after traffic
_HEAD_STARTS = 3  # slices after traffic before which it does
_LONGEST_WAIT = 500  # milliseconds; the handler of a signal that comes just before a wait begins runs after it
_STARVING = 0.02  # seconds of traffic after which the hart gets a slice all the same
_SHORT, _LONG = 1000, 10_000  # instructions per slice, during traffic and else: about 0.2 and 2 ms
_WITNESSED = 40  # times slower is a hart whose every instruction is reported by itself
_RECEIVE = 1 << 16  # drain the socket: remote_bitbang fails when its own writes would block
_SEND_TIMEOUT = 10  # seconds a client may leave replies unread before it counts as dead


class ListenError(RvtraceError):
    """It is not possible to listen at `where`."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        super().__init__(f"cannot listen on {where}: {reason}; {remedy}")
        self.where, self.reason = where, reason


def listen_tcp(port: int) -> socket.socket:
    """Return a listening socket on the loopback interface; *port* 0 takes a free one. Raises ListenError."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(1)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ListenError(f"127.0.0.1:{port}", reason, "choose another port with --port, or 0 for a free one") from None
    return listener


def listen_unix(path: str | Path) -> socket.socket:
    """Return a listening unix socket that only its owner may use. A stale socket file is replaced. Raises ListenError.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        _remove_stale(str(path))
        listener.bind(str(path))
        os.chmod(path, 0o600)  # for its owner alone
        listener.listen(1)
    except OSError as error:
        listener.close()
        raise ListenError(str(path), error.strerror or str(error), "choose another path") from None
    return listener


def _remove_stale(path: str) -> None:
    if not os.path.exists(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        return  # a file of somebody's refuses connections, too
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError:
            return  # nothing there, or nothing that can be helped: bind will tell


class Server:
    """Serves one remote_bitbang client after another, and any number of backdoor clients, until `stop` is called.

    The caller has to close the sockets it passes in.
    """

    def __init__(
        self, machine: Machine, listener: socket.socket, side_door: Backdoor | None = None, *, fast: bool = True
    ) -> None:
        self._machine = machine
        self._listener = listener
        self._side_door = side_door
        self._fast = fast
        self._client: socket.socket | None = None
        self._pins: TapPins | None = None
        self._wake, self._woken = socket.socketpair()
        self._stopping = False
        self._poller = select.poll()
        self._registered: frozenset[int] = frozenset()
        self._slices_since_traffic = 0
        self._ran_at = 0.0

    def stop(self) -> None:
        """Make `serve` return soon. May be called from a signal handler or another thread, and again."""
        self._stopping = True
        with contextlib.suppress(OSError):  # `serve` may have seen that by now, and closed the socket
            self._wake.send(b"!")

    def serve(self) -> None:
        """Serve clients until `stop` is called."""
        try:
            while not self._stopping:
                self._register_sockets()
                for fileno in self._ready_sockets():
                    self._handle(fileno)
        finally:
            self._disconnect()
            if self._side_door is not None:
                self._side_door.disconnect()
            self._wake.close()
            self._woken.close()

    def _register_sockets(self) -> None:
        """Poll the present sockets: while a client is connected others wait in the listener's queue."""
        polled = {self._woken.fileno(), (self._client or self._listener).fileno()}
        if self._side_door is not None:
            polled |= self._side_door.filenos()
        if polled != self._registered:
            for fileno in self._registered - polled:
                self._poller.unregister(fileno)
            for fileno in polled - self._registered:
                self._poller.register(fileno, select.POLLIN)
            self._registered = frozenset(polled)

    def _ready_sockets(self) -> list[int]:
        """Return the sockets that are ready; run the hart when none is, or when it has waited long enough."""
        if self._machine.idle:
            return self._ready(_LONGEST_WAIT)
        ready = self._ready(0)
        if not ready and self._client is not None and self._slices_since_traffic < _HEAD_STARTS:
            ready = [s.fileno() for s in select.select([self._client], [], [], _HEAD_START)[0]]
        if ready and time.monotonic() - self._ran_at < _STARVING:
            return ready
        size = _SHORT if self._slices_since_traffic < _HEAD_STARTS else _LONG
        self._machine.run_slice(size if self._machine.hart.witness is None else size // _WITNESSED)
        self._slices_since_traffic += 1
        self._ran_at = time.monotonic()
        return ready

    def _ready(self, timeout: int) -> list[int]:
        return [fileno for fileno, _ in self._poller.poll(timeout)]

    def _handle(self, fileno: int) -> None:
        if self._client is not None and fileno == self._client.fileno():
            self._slices_since_traffic = 0
            self._serve_client()
        elif fileno == self._listener.fileno():
            self._accept()
        elif self._side_door is not None and fileno in self._side_door.filenos():
            self._side_door.handle(fileno)

    def _accept(self) -> None:
        self._client, _ = self._listener.accept()
        self._client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT, 0))
        if self._client.family == socket.AF_INET:
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pins = self._machine.pins(fast=self._fast)

    def _serve_client(self) -> None:
        assert self._client is not None and self._pins is not None
        try:
            data = self._client.recv(_RECEIVE)
            reply = self._pins.feed(data)
            if reply:
                self._client.sendall(reply)
        except OSError:  # the client died; whatever it wanted to say is void
            data = b""
        if not data or self._pins.quit:
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection. The hart stays as it is: halted or running."""
        if self._client is not None:
            if self._client.fileno() in self._registered:
                self._poller.unregister(self._client.fileno())
                self._registered -= {self._client.fileno()}
            self._client.close()
            self._client = self._pins = None


def serve(machine: Machine, listener: socket.socket) -> None:
    """Serve *machine* to clients of *listener*, until interrupted."""
    Server(machine, listener).serve()
