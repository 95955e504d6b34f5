"""The program that ran, for debuggers that have none: they ask for its path, and read that file through the proxy.

Nothing but the files that are named here can be opened, and none can be written. Source: GDB manual, "General Query
Packets" (qXfer exec-file read), "Host I/O Packets"; "struct stat" is in "File-I/O Remote Protocol Extension".
"""

import errno
import os
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress

from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.proxy.protocol.wire import escaped_within

_EXEC_FILE = b"qXfer:exec-file:read:"
_REFUSED = b"F-1,%x"
_UNKNOWN = 9999  # of the protocol: an error without a number
_ERRNOS = {errno.EPERM: 1, errno.ENOENT: 2, errno.EBADF: 9, errno.EACCES: 13, errno.EROFS: 30}
"""The numbers of the protocol, which are not those of every system."""
_STAT = struct.Struct(">7I3Q3I")
_MOST = 0x3F00  # bytes of a file in an answer: a little less than the packets that the proxy offers


class ProgramFiles:
    """The `Extension` with the program's file. *path*: returns its path, None: there is none."""

    prefixes = (_EXEC_FILE, b"vFile:")

    def __init__(self, path: Callable[[], str | None]) -> None:
        self._path = path
        self._open: dict[int, int] = {}  # the system's file descriptors by those that the client has
        self._operations: Mapping[bytes, Callable[[list[bytes]], bytes]] = {
            b"setfs": lambda _: b"F0",
            b"open": self._answer_open,
            b"close": self._answer_close,
            b"pread": self._answer_pread,
            b"fstat": self._answer_fstat,
        }

    def features(self) -> str:
        return "qXfer:exec-file:read+"

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        if packet.startswith(_EXEC_FILE):
            return self._part_of_path(packet[len(_EXEC_FILE) :].partition(b":")[2])
        name, _, arguments = packet.removeprefix(b"vFile:").partition(b":")
        operation = self._operations.get(name)
        if operation is None:
            return b""
        try:
            return operation(arguments.split(b","))
        except OSError as error:
            return _REFUSED % _ERRNOS.get(error.errno or 0, _UNKNOWN)
        except (ValueError, IndexError, OverflowError):
            return _REFUSED % errno.EINVAL

    def close(self) -> None:
        """Close the files that a client has left open."""
        while self._open:
            with suppress(OSError):
                os.close(self._open.popitem()[1])

    def _part_of_path(self, extent: bytes) -> bytes:
        path = self._path()
        if path is None:
            return b"E00"
        try:
            offset, size = (int(number, 16) for number in extent.split(b","))
        except ValueError:
            return b"E00"
        name = os.fsencode(path)
        part = name[offset : offset + size]
        return (b"l" if offset + len(part) >= len(name) else b"m") + part

    def _answer_open(self, arguments: list[bytes]) -> bytes:
        name, flags = bytes.fromhex(arguments[0].decode()), int(arguments[1], 16)
        path = self._path()
        if path is None or os.path.realpath(os.fsdecode(name)) != os.path.realpath(path):
            raise FileNotFoundError(errno.ENOENT, "")
        if flags & 3:
            raise OSError(errno.EROFS, "")
        number = max(self._open, default=2) + 1
        self._open[number] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return b"F%x" % number

    def _descriptor(self, number: bytes) -> int:
        found = self._open.get(int(number, 16))
        if found is None:
            raise OSError(errno.EBADF, "")
        return found

    def _answer_close(self, arguments: list[bytes]) -> bytes:
        os.close(self._descriptor(arguments[0]))
        del self._open[int(arguments[0], 16)]
        return b"F0"

    def _answer_pread(self, arguments: list[bytes]) -> bytes:
        size, offset = int(arguments[1], 16), int(arguments[2], 16)
        data = os.pread(self._descriptor(arguments[0]), min(size, _MOST), offset)
        length = escaped_within(data, _MOST)[1]  # the answer has to fit into a packet
        return b"F%x;%b" % (length, data[:length])

    def _answer_fstat(self, arguments: list[bytes]) -> bytes:
        it = os.fstat(self._descriptor(arguments[0]))
        whole = 0xFFFF_FFFF
        values = (it.st_dev, it.st_ino, it.st_mode, it.st_nlink, it.st_uid, it.st_gid, 0)
        sizes = (it.st_size, 512, (it.st_size + 511) // 512)
        times = (int(time) & whole for time in (it.st_atime, it.st_mtime, it.st_ctime))
        data = _STAT.pack(*(value & whole for value in values), *sizes, *times)
        return b"F%x;%b" % (len(data), data)
