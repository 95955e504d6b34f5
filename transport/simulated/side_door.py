"""A way past JTAG, over a unix socket: to big buffers, fast, and to what happens to trace components from outside.

The same bytes as a system bus access reads, a thousand times faster. The protocol, in full:

    client:  READ <address> <size>\n      decimal, or hexadecimal with 0x; size at most 16 MiB
    server:  OK <size>\n                  followed by <size> raw bytes
      or:    ERROR <what is wrong>\n      and the connection goes on

    client:  OVERFLOW <encoder>\n         it loses trace once
             JAM <component>\n            this sink, bridge or funnel takes nothing any more
             UNJAM <component>\n          it does again
             TRIGGER <encoder> <input>\n  an external trigger input fires
    server:  OK 0\n                       done; nothing follows
      or:    ERROR <what is wrong>\n

Any number of requests may follow one another, and be sent before the answers have come. Only memory (RAM) can be read,
not devices, so reading changes nothing. Components are called as in the target description. Any other line is answered
by ERROR. A line of more than 200 bytes ends the connection.
"""

import socket
import struct
from collections.abc import Mapping

from rvtrace_gdb.controlregs.encoder import TRIG_EXT_IN_CONTROL
from rvtrace_gdb.controlregs.sifive_v0.encoder import XTI_CONTROL
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.trace_devices import TraceComponent
from rvtrace_gdb.transport.simulated.trace_encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.trace_output import TraceConsumer
from rvtrace_gdb.transport.simulated.wiring_devices import AnyEncoder

LARGEST = 16 << 20
_LONGEST_LINE = 200
_SEND_TIMEOUT = 10
_NONE: Mapping[str, TraceComponent] = {}
_DONE = b"OK 0\n"


class SideDoor:
    """Answers the clients of *listener*, which is the caller's to close; the owner polls `filenos`.

    *components*: by name, those there are.
    """

    def __init__(self, bus: Bus, listener: socket.socket, components: Mapping[str, TraceComponent] = _NONE) -> None:
        self._bus = bus
        self._components = components
        self._listener = listener
        self._clients: dict[int, tuple[socket.socket, bytearray]] = {}
        self._filenos = frozenset({listener.fileno()})

    def filenos(self) -> frozenset[int]:
        """The sockets to wait for."""
        return self._filenos

    def handle(self, fileno: int) -> None:
        """One of them is ready."""
        if fileno == self._listener.fileno():
            client, _ = self._listener.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT, 0))
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
        """Read what there is and answer the whole lines in it. False: the connection is over."""
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
        """The reply to one request line (without its newline)."""
        command, *words = line.decode("ascii", "replace").split() or [""]
        if command in ("OVERFLOW", "TRIGGER"):
            return self._disturb(command, words)
        if command in ("JAM", "UNJAM"):
            return self._jam(words, command == "JAM")
        return self._read(command, words)

    def _read(self, command: str, words: list[str]) -> bytes:
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
        """Something happens to an encoder."""
        encoder = self._components.get(words[0]) if words else None
        if not isinstance(encoder, AnyEncoder):
            return _unknown(
                "encoder", [name for name, each in self._components.items() if isinstance(each, AnyEncoder)]
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

    def _jam(self, words: list[str], jammed: bool) -> bytes:
        component = self._components.get(words[0]) if len(words) == 1 else None
        if not isinstance(component, TraceConsumer):
            known = [name for name, each in self._components.items() if isinstance(each, TraceConsumer)]
            return _unknown("sink, bridge or funnel", known)
        component.jammed = jammed
        return _DONE


def _trigger_inputs(encoder: AnyEncoder) -> int:
    """How many it has: each has 4 bits in a register."""
    register = TRIG_EXT_IN_CONTROL if isinstance(encoder, TraceEncoder) else XTI_CONTROL
    return encoder.legal(register).bit_count() // 4


def _unknown(what: str, known: list[str]) -> bytes:
    return f"ERROR name one {what}: {', '.join(known) or 'there is none'}\n".encode()
