"""A fast way to big buffers, past JTAG: raw reads of the simulated target's memory over a unix socket.

The same bytes as a system bus access reads, a thousand times faster. The protocol, in full:

    client:  READ <address> <size>\n      decimal, or hexadecimal with 0x; size at most 16 MiB
    server:  OK <size>\n                  followed by <size> raw bytes
      or:    ERROR <what is wrong>\n      and the connection goes on

Any number of requests may follow one another, and be sent before the answers have come. Only memory (RAM) can be read,
not devices, so reading changes nothing. Any other line is answered by ERROR. A line of more than 200 bytes ends the
connection. There is no other command.
"""

import socket
import struct

from transport.simulated.bus import Bus, BusError

LARGEST = 16 << 20
_LONGEST_LINE = 200
_SEND_TIMEOUT = 10


class SideDoor:
    """Answers the clients of *listener*, which is the caller's to close; the owner polls `filenos`."""

    def __init__(self, bus: Bus, listener: socket.socket) -> None:
        self._bus = bus
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
        try:
            command, address, size = line.decode("ascii").split()
            start, count = int(address, 0), int(size, 0)
        except ValueError:
            return b"ERROR not understood; say READ <address> <size>\n"
        if command != "READ" or start < 0 or not 0 <= count <= LARGEST:
            return b"ERROR not understood; say READ <address> <size>, size at most %d\n" % LARGEST
        try:
            return b"OK %d\n" % count + self._bus.read_bytes(start, count)
        except BusError as error:
            return f"ERROR {error}\n".encode()
