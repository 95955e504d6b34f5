"""Where what leaves a pin interface or a bridge of `rvtrace sim` goes: files and sockets."""

import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from rvtrace_gdb.console.sim_devices import streaming
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.transport.simulated.server import ListenError, listen_tcp, listen_unix
from rvtrace_gdb.transport.simulated.trace_streams import FileStream, SocketStream, Stream
from rvtrace_gdb.transport.simulated.wiring import AtbBridgePart, PibSinkPart, Wiring

_TCP, _UNIX = "tcp:", "unix:"


class BadStream(RvtraceError):
    """A stream of a component that has none, or one that cannot be opened."""


class Streams:
    """Opens them; *cleanup* closes them and removes the sockets' files. Raises RvtraceError."""

    def __init__(self, cleanup: ExitStack) -> None:
        self._cleanup = cleanup
        self.opened: dict[str, str] = {}
        """Where each component's goes, by its name."""

    def open(self, name: str, where: str, folder: Path) -> Stream:
        """*where*: `tcp:PORT`, `unix:PATH` or the path of a file, relative to *folder*."""
        stream, shown = self._opened(name, where, folder)
        self._cleanup.callback(stream.close)
        self.opened[name] = shown
        return stream

    def _opened(self, name: str, where: str, folder: Path) -> tuple[Stream, str]:
        """And how it is called in messages."""
        if where.startswith(_TCP):
            return self._tcp(name, where.removeprefix(_TCP))
        unix, path = where.startswith(_UNIX), folder / where.removeprefix(_UNIX)
        shown = f"{_UNIX if unix else ''}{path}"
        if shown in self.opened.values():
            raise BadStream(f"{name}: {shown} is where another component's trace goes")
        if not unix:
            return FileStream(path), shown
        listener = self._listening(name, lambda: listen_unix(path))
        self._cleanup.callback(path.unlink, missing_ok=True)
        return SocketStream(listener), shown

    def _tcp(self, name: str, port: str) -> tuple[Stream, str]:
        if not is_number(port) or int(port) >= 1 << 16:
            raise BadStream(f"{name}: tcp:{port}: give a port, or 0 for a free one")
        listener = self._listening(name, lambda: listen_tcp(int(port)))
        return SocketStream(listener), f"{_TCP}{listener.getsockname()[1]}"

    @staticmethod
    def _listening(name: str, listen: Callable[[], socket.socket]) -> socket.socket:
        try:
            return listen()
        except ListenError as error:
            raise BadStream(f"{name}: cannot listen on {error.where}: {error.reason}; choose another place") from None


def asked_for(wiring: Wiring, wanted: Sequence[str], streams: Streams) -> Wiring:
    """*wiring* with the streams of --stream: NAME=WHERE each. Raises RvtraceError."""
    for text in wanted:
        name, _, where = text.partition("=")
        outlets = {part.name: part for part in wiring.parts if isinstance(part, PibSinkPart | AtbBridgePart)}
        if name not in outlets or not where:
            there = ", ".join(outlets) or "none in this target"
            raise BadStream(f"--stream {text}: give NAME=WHERE; pin interfaces and bridges to name: {there}")
        if name in streams.opened:
            raise BadStream(f"--stream {text}: {name} goes to {streams.opened[name]} already")
        part = streaming(outlets[name], streams.open(name, where, Path()))
        wiring = Wiring(tuple(part if other.name == name else other for other in wiring.parts))
    return wiring
