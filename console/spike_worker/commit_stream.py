"""Spike's log of commits, which it writes to a stream of the C library: what each step wrote to it.

The stream gets a buffer of ours, and what was written is taken from there: to flush it to a pipe and to read that would
be two system calls for each step, which take longer than the step. Where the stream is not found, as with another C
library, they are made. Source of the places in a stream: glibc, the members of a FILE on 64-bit systems, part of
its ABI, and `_IO_list_all`, the list of all streams.
"""

import ctypes
import os
from ctypes import c_char_p, c_int, c_size_t, c_uint64, c_void_p

_WRITE_PTR, _BUF_BASE, _BUF_END, _CHAIN, _FILENO = 40, 56, 64, 104, 112
_FULLY_BUFFERED = 0
_SIZE = 1 << 16  # more than any line of the log


class CommitStream:
    """The log. Spike opens *path*; after that `attach` has to be called."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self.path = f"/dev/fd/{self._write_end}"
        self._library = ctypes.CDLL(None)
        self._buffer = ctypes.create_string_buffer(_SIZE)
        self._text = memoryview(self._buffer).cast("B")
        self._begin = ctypes.addressof(self._buffer)
        self._end: c_uint64 | None = None  # where the stream writes next; None: it has a buffer of its own

    def attach(self) -> None:
        """Give the stream that Spike has opened its buffer."""
        os.close(self._write_end)
        stream = stream_of(self._library, os.fstat(self._read_end).st_ino)
        if stream is None:
            return
        give = self._library.setvbuf
        give.argtypes = [c_void_p, c_char_p, c_int, c_size_t]
        if give(stream, self._buffer, _FULLY_BUFFERED, _SIZE):
            return
        if _pointer_at(stream + _BUF_BASE) == self._begin and _pointer_at(stream + _BUF_END) == self._begin + _SIZE:
            self._end = c_uint64.from_address(stream + _WRITE_PTR)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        end = self._end
        if end is None:
            return self._flushed()
        size = end.value - self._begin
        if size <= 0:
            return b""
        end.value = self._begin
        return self._text[:size].tobytes()

    def _flushed(self) -> bytes:
        self._library.fflush(None)
        try:
            return os.read(self._read_end, _SIZE)
        except BlockingIOError:
            return b""


def stream_of(library: ctypes.CDLL, inode: int) -> int | None:
    """Return the address of the C library's stream that writes to a pipe; None: it is not found."""
    try:
        stream = c_uint64.in_dll(library, "_IO_list_all").value
    except ValueError:
        return None
    while stream:
        number = c_int.from_address(stream + _FILENO).value
        if number > 2 and os.fstat(number).st_ino == inode:
            return stream
        stream = _pointer_at(stream + _CHAIN)
    return None


def _pointer_at(address: int) -> int:
    return c_uint64.from_address(address).value
