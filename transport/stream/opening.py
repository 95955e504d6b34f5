"""From what a user calls a stream to the stream."""

import contextlib
import errno
import os
import re
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from rvtrace_gdb.support.text import why_not
from rvtrace_gdb.transport.stream.descriptors import Descriptor
from rvtrace_gdb.transport.stream.growing import Growing
from rvtrace_gdb.transport.stream.interface import NoStream, Stream
from rvtrace_gdb.transport.stream.serial import open_serial

_TCP, _UNIX = "tcp:", "unix:"
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^/:]*):([0-9]+)")
_CONNECT_SECONDS = 10
_GROUP = " (serial devices are for the group dialout, on most systems)"
_PROBLEMS = {
    errno.ECONNREFUSED: "nobody listens there (connection refused)",
    errno.ENOENT: "no such socket",
    errno.EPROTOTYPE: "a socket of another kind listens there",
    errno.ENETUNREACH: "the network cannot be reached",
    errno.EHOSTUNREACH: "the host cannot be reached",
    errno.EACCES: "no permission",
}


def open_stream(where: str, *, baud: int | None = None) -> Stream:
    """*where*: `-` (standard input), `tcp:HOST:PORT`, `HOST:PORT`, `unix:PATH`, or the path of a file, a named pipe, a
    socket or a serial device, which then has *baud* bits per second. Raises NoStream.
    """
    if baud is not None and (where == "-" or where.startswith((_TCP, _UNIX))):
        raise NoStream(where, f"is no serial line: it has no speed to set (--baud {baud})")
    if where == "-":
        return Descriptor("standard input", "bytes", 0, lambda: None)
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
        raise NoStream(path, f"cannot be read: {why_not(error)}") from None
    if stat.S_ISCHR(mode) and _is_terminal(path):
        return open_serial(path, _opened(path), baud)
    if baud is not None:
        raise NoStream(path, f"is no serial line: it has no speed to set (--baud {baud})")
    if stat.S_ISDIR(mode):
        raise NoStream(path, "is a folder")
    if stat.S_ISSOCK(mode):
        return _unix(path, path)
    if stat.S_ISREG(mode):
        return Growing(path)
    fd = _opened(path)
    return Descriptor(path, "named pipe" if stat.S_ISFIFO(mode) else "device", fd, lambda: os.close(fd))


def _is_terminal(path: str) -> bool:
    fd = _opened(path)
    try:
        return os.isatty(fd)
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    """Without waiting for a pipe's other end, or for a line's carrier."""
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
        raise NoStream(name, f"cannot connect: {why_not(error)}") from None
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setblocking(False)
    return Descriptor(name, "socket", connection.fileno(), connection.close)
