"""Serves a machine to OpenOCD (remote_bitbang) over a socket, and lets its hart run in between.

One thread does both, so the order matters: a debugger sends one scan per memory word and waits for the answer. Were
the hart to run a slice after each, reading 64 KiB of a running target would take forty times as long. So the socket is
looked at first, and after traffic the hart waits a moment for more; but never so long that it starves.
"""

import contextlib
import os
import select
import socket
import stat
import struct
import time
from pathlib import Path

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.bitbang import Pins
from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.transport.simulated.side_door import SideDoor

_HEAD_START = 0.0002  # seconds the hart waits for the next scan after traffic
_HEAD_STARTS = 3  # slices after traffic before which it does
_STARVING = 0.02  # seconds of traffic after which the hart gets a slice all the same
_SHORT, _LONG = 1000, 10_000  # instructions per slice, during traffic and else: about 0.2 and 2 ms
_WITNESSED = 40  # times slower is a hart whose every instruction is told by itself
_RECEIVE = 1 << 16  # drain the socket: remote_bitbang fails when its own writes would block
_SEND_TIMEOUT = 10  # seconds a client may leave replies unread before it counts as dead


class ListenError(RvtraceError):
    """`where` cannot be listened on."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        super().__init__(f"cannot listen on {where}: {reason}; {remedy}")
        self.where, self.reason = where, reason


def listen_tcp(port: int) -> socket.socket:
    """A listening socket on the loopback interface; *port* 0 takes a free one. Raises ListenError."""
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
    """A listening unix socket, for its owner alone. A socket file nobody listens on is replaced. Raises ListenError."""
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
    """Serves one remote_bitbang client after another, and any number of side doors, until `stop` is called.

    The sockets passed in are the caller's to close.
    """

    def __init__(
        self, machine: Machine, listener: socket.socket, side_door: SideDoor | None = None, *, fast: bool = True
    ) -> None:
        self._machine = machine
        self._listener = listener
        self._side_door = side_door
        self._fast = fast
        self._client: socket.socket | None = None
        self._pins: Pins | None = None
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
        """Returns after `stop`."""
        try:
            while not self._stopping:
                self._register()
                for fileno in self._wait():
                    self._handle(fileno)
        finally:
            self._disconnect()
            if self._side_door is not None:
                self._side_door.disconnect()
            self._wake.close()
            self._woken.close()

    def _register(self) -> None:
        """Poll the sockets there are now: while a client is connected others wait in the listener's queue."""
        wanted = {self._woken.fileno(), (self._client or self._listener).fileno()}
        if self._side_door is not None:
            wanted |= self._side_door.filenos()
        if wanted != self._registered:
            for fileno in self._registered - wanted:
                self._poller.unregister(fileno)
            for fileno in wanted - self._registered:
                self._poller.register(fileno, select.POLLIN)
            self._registered = frozenset(wanted)

    def _wait(self) -> list[int]:
        """The sockets that are ready; runs the hart when none is, or when it has waited long enough."""
        if self._machine.idle:
            return self._ready(None)
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

    def _ready(self, timeout: int | None) -> list[int]:
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
        """The hart stays as it is: halted or running."""
        if self._client is not None:
            if self._client.fileno() in self._registered:
                self._poller.unregister(self._client.fileno())
                self._registered -= {self._client.fileno()}
            self._client.close()
            self._client = self._pins = None


def serve(machine: Machine, listener: socket.socket) -> None:
    """Serve *machine* to whoever connects to *listener*, until interrupted."""
    Server(machine, listener).serve()
