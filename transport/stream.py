"""Streams of bytes: files that grow, pipes, sockets, serial lines.

`open_stream` opens a `Stream`, given the user's name for it. Pipes, sockets and terminals are file descriptors that can
be waited for. A file that grows is read from its beginning, as `tail -F` follows one, also when it is truncated or
replaced. Serial lines deliver bytes unchanged: 8 data bits, no parity, no flow control, no translation.
"""

import contextlib
import errno
import fcntl
import os
import re
import select
import socket
import stat
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import open_problem

PIECE = 1 << 16
"""The most bytes that are read at once."""


class NoStream(RvtraceError):
    """A stream that cannot be opened. *name*: the user's name for it; *problem*: the reason."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


class StreamLost(NoStream):
    """A stream that broke off; the bytes before that are good."""


class Stream(Protocol):
    """A stream of bytes. *name*: the user's name for it; *kind*: what it is, for messages.

    *endless*: it has no end of its own. *lasting*: its bytes stay available, however late they are read.
    """

    name: str
    kind: str
    endless: bool
    lasting: bool

    def read(self, wait: float) -> bytes | None:
        """Return the bytes that have arrived; b"" if there are none within *wait* seconds, None at the end. Raises
        StreamLost.
        """
        ...

    def notices(self) -> list[str]:
        """Return the notices for the user that were not returned yet, a line each."""
        ...

    def close(self) -> None:
        """Release the stream."""
        ...


_GONE = {
    errno.ECONNRESET: "the other side reset the connection",
    errno.ETIMEDOUT: "the other side no longer answers",
    errno.EIO: "the device is gone (unplugged?)",
    errno.ENODEV: "the device is gone (unplugged?)",
    errno.ENXIO: "the device is gone (unplugged?)",
}


class DescriptorStream:
    """Bytes from *fd*, which *close* closes. If *ends* is False it has no end: a line that hangs up is lost."""

    endless = False

    def __init__(self, name: str, kind: str, fd: int, close: Callable[[], None], *, ends: bool = True) -> None:
        self.name, self.kind = name, kind
        self.lasting = stat.S_ISREG(os.fstat(fd).st_mode)
        self._fd, self._close, self._ends = fd, close, ends
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self, wait: float) -> bytes | None:
        """Implement `Stream.read`."""
        ready = self._poll.poll(wait * 1000)
        if not ready:
            return b""
        try:
            data = os.read(self._fd, PIECE)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError as error:
            raise StreamLost(self.name, _GONE.get(error.errno or 0, f"cannot be read: {error.strerror}")) from None
        if data:
            return data
        if not self._ends:
            raise StreamLost(self.name, _GONE[errno.EIO])
        return None

    def notices(self) -> list[str]:
        """Implement `Stream.notices`."""
        return []

    def close(self) -> None:
        """Implement `Stream.close`."""
        self._close()


_PAUSE = 0.02  # seconds between two looks


class GrowingFile:
    """The bytes of *path* and those that are appended; the file may be created later. Raises NoStream."""

    kind = "file"
    endless = True
    lasting = True

    def __init__(self, path: str) -> None:
        self.name = path
        self._file: BinaryIO | None = None
        self._notices: list[str] = []
        if not self._open_file():
            self._notices.append(f"{path}: is not there yet: waiting for it")

    def read(self, wait: float) -> bytes | None:
        """Implement `Stream.read`."""
        end = time.monotonic() + wait
        while not (data := self._now()):
            left = end - time.monotonic()
            if left <= 0:
                return b""
            time.sleep(min(_PAUSE, left))
        return data

    def notices(self) -> list[str]:
        """Implement `Stream.notices`."""
        found, self._notices = self._notices, []
        return found

    def close(self) -> None:
        """Implement `Stream.close`."""
        if self._file is not None:
            self._file.close()

    def _open_file(self) -> bool:
        try:
            self._file = open(self.name, "rb", buffering=0)  # noqa: SIM115 - until `close`
        except FileNotFoundError:
            return False
        except OSError as error:
            raise NoStream(self.name, f"cannot be read: {error.strerror}") from None
        return True

    def _now(self) -> bytes:
        """Return the bytes that are there. At the end of the file, check that it is still the same file, and no
        shorter.
        """
        try:
            if self._file is None:
                return self._now() if self._open_file() else b""
            data = self._file.read(PIECE)
            return data or self._after_the_end(self._file)
        except OSError as error:
            raise StreamLost(self.name, f"cannot be read: {error.strerror}") from None

    def _after_the_end(self, file: BinaryIO) -> bytes:
        there = os.fstat(file.fileno())
        if there.st_size < file.tell():
            self._notices.append(f"{self.name}: was truncated: continuing at its beginning")
            file.seek(0)
            return file.read(PIECE)
        try:
            named = Path(self.name).stat()
        except FileNotFoundError:
            return b""  # moved away: another one will come in its place, and until then this one may grow
        if (named.st_dev, named.st_ino) != (there.st_dev, there.st_ino):
            rest = file.read(PIECE)  # came while it was looked at
            if rest:
                return rest
            self._notices.append(f"{self.name}: was replaced by another file: continuing with that")
            file.close()
            self._file = None
        return b""


_LINUX = sys.platform.startswith("linux")
_TERMIOS2 = struct.Struct("=4IB19s2I")  # Linux, asm-generic/termbits.h; with any speed as a number
_TCGETS2, _TCSETS2 = 0x802C542A, 0x402C542B
_CBAUD, _BOTHER = 0o010017, 0o010000
_STANDARD = {getattr(termios, name): int(name[1:]) for name in dir(termios) if name[0] == "B" and name[1:].isdigit()}


def open_serial(name: str, fd: int, baud: int | None) -> DescriptorStream:
    """Return the serial line *fd* at *baud* bits per second; None: at its present speed. Raises NoStream.

    Its settings are restored when it is closed; no other program can open it until then.
    """
    try:
        before = termios.tcgetattr(fd)
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, termios.TIOCEXCL)
        _make_raw(fd)
        if baud is not None:
            _set_speed(fd, baud)
        speed = _speed(fd)
        if baud not in (None, speed):
            raise NoStream(name, f"does not do {baud} baud")
    except (OSError, termios.error) as error:
        os.close(fd)
        number = error.args[0] if error.args else 0
        if number == errno.EINVAL and baud is not None:
            raise NoStream(name, f"does not do {baud} baud") from None
        if number in (errno.EIO, errno.ENXIO, errno.ENODEV):  # /dev/ttyS* exist also for ports without a chip
            raise NoStream(name, "no device is connected to it") from None
        raise NoStream(name, f"cannot be set up as a serial line: {os.strerror(number)}") from None

    def close() -> None:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)
            fcntl.ioctl(fd, termios.TIOCNXCL)
        os.close(fd)

    return DescriptorStream(name, f"serial line, {speed} baud", fd, close, ends=False)


def _make_raw(fd: int) -> None:
    """Set the line as cfmakeraw(3) does, and discard the bytes that arrived before."""
    made = termios.tcgetattr(fd)
    made[0] = termios.IGNBRK
    made[1] = 0
    made[2] = made[2] & ~(termios.CSIZE | termios.PARENB | termios.CSTOPB | termios.CRTSCTS) | (
        termios.CS8 | termios.CREAD | termios.CLOCAL
    )
    made[3] = 0
    made[6][termios.VMIN], made[6][termios.VTIME] = 1, 0
    termios.tcsetattr(fd, termios.TCSANOW, made)


def _set_speed(fd: int, baud: int) -> None:
    standard = next((constant for constant, speed in _STANDARD.items() if speed == baud), None)
    if standard is not None:
        made = termios.tcgetattr(fd)
        made[4] = made[5] = standard
        termios.tcsetattr(fd, termios.TCSANOW, made)
    elif _LINUX:
        *flags, line, characters, _, _ = _termios2(fd)
        flags[2] = flags[2] & ~_CBAUD | _BOTHER
        fcntl.ioctl(fd, _TCSETS2, _TERMIOS2.pack(*flags, line, characters, baud, baud))
    else:
        raise OSError(errno.EINVAL, "no standard speed")


def _speed(fd: int) -> int:
    if _LINUX:
        return int(_termios2(fd)[-1])
    return _STANDARD.get(termios.tcgetattr(fd)[5], 0)


def _termios2(fd: int) -> tuple[int, ...]:
    return _TERMIOS2.unpack(fcntl.ioctl(fd, _TCGETS2, bytes(_TERMIOS2.size)))


_TCP, _UNIX = "tcp:", "unix:"
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^/:]*):([0-9]+)")
_CONNECT_SECONDS = 10
_GROUP = " (serial devices are for the group dialout, on most systems)"
_PROBLEMS = {
    errno.ECONNREFUSED: "nothing listens there (connection refused)",
    errno.ENOENT: "no such socket",
    errno.EPROTOTYPE: "a socket of another kind listens there",
    errno.ENETUNREACH: "the network cannot be reached",
    errno.EHOSTUNREACH: "the host cannot be reached",
    errno.EACCES: "no permission",
}


def open_stream(where: str, *, baud: int | None = None) -> Stream:
    """Open *where*: `-` (standard input), `tcp:HOST:PORT`, `HOST:PORT`, `unix:PATH`, or the path of a file, a named
    pipe, a socket or a serial device, which is then set to *baud* bits per second. Raises NoStream.
    """
    if baud is not None and (where == "-" or where.startswith((_TCP, _UNIX))):
        raise NoStream(where, f"is not a serial line: it has no speed to set (--baud {baud})")
    if where == "-":
        return DescriptorStream("standard input", "bytes", 0, lambda: None)
    if where.startswith(_UNIX):
        return _unix(where, where.removeprefix(_UNIX))
    if where.startswith(_TCP):
        return _tcp(where, where.removeprefix(_TCP))
    if _HOST_PORT.fullmatch(where) and not os.path.exists(where):
        return _tcp(where, where)
    return _path(where, baud)


def _path(path: str, baud: int | None) -> Stream:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if path.startswith("/dev/"):
            raise NoStream(path, "no such device: is it plugged in?") from None
        if not path or not Path(path).parent.is_dir():
            raise NoStream(path, "no such file, and no folder where it could appear") from None
        mode = stat.S_IFREG
    except (OSError, ValueError) as error:
        raise NoStream(path, f"cannot be read: {open_problem(error)}") from None
    if stat.S_ISCHR(mode) and _is_terminal(path):
        return open_serial(path, _opened(path), baud)
    if baud is not None:
        raise NoStream(path, f"is not a serial line: it has no speed to set (--baud {baud})")
    if stat.S_ISDIR(mode):
        raise NoStream(path, "is a folder")
    if stat.S_ISSOCK(mode):
        return _unix(path, path)
    if stat.S_ISREG(mode):
        return GrowingFile(path)
    fd = _opened(path)
    return DescriptorStream(path, "named pipe" if stat.S_ISFIFO(mode) else "device", fd, lambda: os.close(fd))


def _is_terminal(path: str) -> bool:
    fd = _opened(path)
    try:
        return os.isatty(fd)
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    """Open the path without waiting for a pipe's other end, or for a line's carrier."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        known = {
            errno.EBUSY: "is used by another program",
            errno.EACCES: "no permission to read it" + (_GROUP if path.startswith("/dev/") else ""),
            errno.ENXIO: "no such device: is it plugged in?",
        }
        raise NoStream(path, known.get(error.errno or 0, f"cannot be opened: {error.strerror}")) from None


def _tcp(name: str, place: str) -> Stream:
    found = _HOST_PORT.fullmatch(place)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise NoStream(name, "give tcp:HOST:PORT")
    host, port = found[1].strip("[]") or "localhost", int(found[2])
    return _connected(name, lambda: socket.create_connection((host, port), _CONNECT_SECONDS))


def _unix(name: str, path: str) -> Stream:
    def connect() -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(path)
        except BaseException:
            made.close()
            raise
        return made

    return _connected(name, connect)


def _connected(name: str, connect: Callable[[], socket.socket]) -> Stream:
    try:
        connection = connect()
    except socket.gaierror:
        raise NoStream(name, "no such host") from None
    except TimeoutError:
        raise NoStream(name, f"no answer within {_CONNECT_SECONDS} seconds") from None
    except OSError as error:
        why = _PROBLEMS.get(error.errno or 0, error.strerror or str(error))
        raise NoStream(name, f"cannot connect: {why}") from None
    except ValueError as error:
        raise NoStream(name, f"cannot connect: {open_problem(error)}") from None
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setblocking(False)
    return DescriptorStream(name, "socket", connection.fileno(), connection.close)
