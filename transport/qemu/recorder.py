"""A recorder of what QEMU runs: the shared memory it writes to, and the sockets in its folder.

A recorder (plugin/, or what reads QEMU's log) writes what each hart ran into shared memory; see plugin/plugin.c. While
QEMU runs, the recorder and QEMU are spoken to over sockets.

    ring = Ring.open(folder)
    words = ring.words(hart, ring.oldest(hart), ring.written(hart))
"""

import json
import mmap
import os
import socket
import struct
from array import array
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from rvtrace_gdb.support.errors import RvtraceError


class QemuError(RvtraceError):
    """QEMU cannot be started as asked, or does not do what was asked of it."""


class QemuGone(QemuError):
    """QEMU has ended, or what `rvtrace qemu` wrote about it is of an earlier run. *folder*: where its recorder was."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"{folder}: QEMU is not running there any more: start it anew with `rvtrace qemu`")


MAGIC = b"RVTRACE1"
TAG, FIELD = 3 << 30, (1 << 30) - 1
"""The top two bits of a word say what it is, the others are its value."""
BLOCK, DATA, TRAP, PARTIAL = 0 << 30, 1 << 30, 2 << 30, 3 << 30
RECORDING_BEGAN = 1 << 29
"""Of a word TRAP: recording began here."""
TRAP_WORDS = 9
"""Words DATA behind a word TRAP."""
NAMES = RING, CODE, LOG, CONTROL, QMP = "ring", "code", "log", "control", "qmp"
"""The files in a recorder's folder."""

_HEADER, _PLACE, _PAGE, _WORD = 4096, 64, 4096, 4  # bytes
_WORDS, _HARTS, _FLAGS, _RECORDING, _ENDED, _READER, _CODE_BYTES, _FAILED = range(8, 72, 8)
_WRITTEN, _READ, _BEGAN = 0, 8, 16
_STALLING = 1
_U64 = struct.Struct("<Q")


class Ring:
    """What was recorded. Numbers of words count from the first one ever written to a hart's ring."""

    def __init__(self, memory: mmap.mmap, folder: Path) -> None:
        self._memory, self.folder = memory, folder
        self.size, self.harts = self._get(_WORDS), self._get(_HARTS)
        """Words of each ring, and how many there are."""
        self._first = _HEADER + -(-self.harts * _PLACE // _PAGE) * _PAGE

    @classmethod
    def open(cls, folder: Path) -> Self:
        """That of the recorder in *folder*. Raises QemuGone, QemuError."""
        try:
            with open(folder / RING, "r+b") as file:
                memory = mmap.mmap(file.fileno(), 0)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise QemuGone(str(folder)) from None
        except OSError as error:
            raise QemuError(f"{folder / RING}: cannot be opened: {error.strerror}") from None
        if memory[: len(MAGIC)] != MAGIC:
            raise QemuGone(str(folder))
        return cls(memory, folder)

    @classmethod
    def create(cls, folder: Path, words: int, harts: int, *, stalling: bool, recording: bool) -> Self:
        """A new one, as plugin.c makes it. *words*: a power of two."""
        size = _HEADER + -(-harts * _PLACE // _PAGE) * _PAGE + harts * words * _WORD
        file = os.open(folder / RING, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(file, 0, size)  # not found missing later, as a signal
            memory = mmap.mmap(file, size)
        finally:
            os.close(file)
        for at, value in ((_WORDS, words), (_HARTS, harts), (_FLAGS, stalling), (_RECORDING, recording)):
            _U64.pack_into(memory, at, value)
        _U64.pack_into(memory, _READER, os.getpid())
        (folder / CODE).touch(0o600)
        memory[: len(MAGIC)] = MAGIC
        return cls(memory, folder)

    def close(self) -> None:
        self._memory.close()

    # What the reader asks

    @property
    def recording(self) -> bool:
        return bool(self._get(_RECORDING))

    @property
    def ended(self) -> bool:
        """QEMU has ended in an orderly way: all it ran is here."""
        return bool(self._get(_ENDED))

    @property
    def failed(self) -> int:
        """The errno for which the recorder cannot write down the code that runs; 0: it can."""
        return self._get(_FAILED)

    @property
    def stalling(self) -> bool:
        """A hart waits for the reader; else the oldest words are overwritten."""
        return bool(self._get(_FLAGS) & _STALLING)

    @property
    def code_bytes(self) -> int:
        """How much of the file CODE is complete."""
        return self._get(_CODE_BYTES)

    def written(self, hart: int) -> int:
        """How many words were ever written."""
        return self._get(self._place(hart, _WRITTEN))

    def oldest(self, hart: int) -> int:
        """The number of the oldest word that is still there."""
        return max(self.written(hart) - self.size, 0)

    def began(self, hart: int) -> int:
        """How many instructions of the last block had begun at the last synchronization (`transport.qemu.recorder`)."""
        return self._get(self._place(hart, _BEGAN))

    def words(self, hart: int, begin: int, end: int) -> "array[int]":
        """The words numbered *begin* to *end* - 1, of which the first may have been overwritten: see `oldest`."""
        found = array("I")
        base = self._first + hart * self.size * _WORD
        while begin < end:
            at = begin % self.size
            count = min(end - begin, self.size - at)
            found.frombytes(self._memory[base + at * _WORD : base + (at + count) * _WORD])
            begin += count
        return found

    def release(self, hart: int, number: int) -> None:
        """The words before this number were read: a hart that waits goes on."""
        _U64.pack_into(self._memory, self._place(hart, _READ), number)

    # What the writer does

    def write(self, hart: int, words: "array[int]") -> None:
        """Appends; of more than a ring holds, the newest stay."""
        written = self.written(hart)
        kept = words[-self.size :]
        at, base = (written + len(words) - len(kept)) % self.size, self._first + hart * self.size * _WORD
        count = min(len(kept), self.size - at)
        self._memory[base + at * _WORD : base + (at + count) * _WORD] = kept[:count].tobytes()
        self._memory[base : base + (len(kept) - count) * _WORD] = kept[count:].tobytes()
        _U64.pack_into(self._memory, self._place(hart, _WRITTEN), written + len(words))

    def room(self, hart: int) -> int:
        """How many words may be written before the reader has to be waited for."""
        return self.size - (self.written(hart) - self._get(self._place(hart, _READ)))

    def record(self, on: bool) -> None:
        _U64.pack_into(self._memory, _RECORDING, on)

    def end(self) -> None:
        _U64.pack_into(self._memory, _ENDED, 1)

    def fail(self, errno: int) -> None:
        _U64.pack_into(self._memory, _FAILED, errno)

    def set_began(self, hart: int, count: int) -> None:
        _U64.pack_into(self._memory, self._place(hart, _BEGAN), count)

    def set_code_bytes(self, size: int) -> None:
        _U64.pack_into(self._memory, _CODE_BYTES, size)

    def _place(self, hart: int, field: int) -> int:
        return _HEADER + hart * _PLACE + field

    def _get(self, at: int) -> int:
        value: int = _U64.unpack_from(self._memory, at)[0]
        return value


_PATIENCE = 20.0  # seconds; both answer at once unless the machine is very busy
_ANSWER_LIMIT = 1 << 20  # bytes


def synchronize(folder: Path) -> None:
    """All that ran is in the ring afterwards, with how far each hart is in its last block. To be called only while the
    program is stopped. Raises QemuError.
    """
    _command(folder, "settle")


def set_recording(folder: Path, on: bool) -> None:
    """Begin to record what runs from now on, or end it. Raises QemuError."""
    _command(folder, "on" if on else "off")


def is_running(folder: Path) -> bool:
    """Whether QEMU runs the program now; a debugger stops it. Raises QemuError.

    Source: QEMU's documentation of QMP: a greeting, `qmp_capabilities`, then commands; events come in between.
    """
    with closing(_connected(folder, QMP)) as link, link.makefile("r", encoding="utf-8") as lines:
        try:
            _json(lines.readline(_ANSWER_LIMIT))
            for command in ("qmp_capabilities", "query-status"):
                link.sendall(json.dumps({"execute": command}).encode() + b"\n")
                answer = _json(lines.readline(_ANSWER_LIMIT))
                while "event" in answer:
                    answer = _json(lines.readline(_ANSWER_LIMIT))
            return bool(answer["return"]["running"])
        except TimeoutError:
            raise QemuError(f"{folder / QMP}: QEMU does not say whether it runs") from None
        except (OSError, ValueError, KeyError, TypeError):  # cut off in the middle: it is just ending
            raise QemuGone(str(folder)) from None


def _json(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return found


def _command(folder: Path, command: str) -> None:
    with closing(_connected(folder, CONTROL)) as link:
        try:
            link.sendall(f"{command}\n".encode())
            answer = link.recv(16)
        except TimeoutError:
            raise QemuError(f"{folder / CONTROL}: the recorder does not answer") from None
        except OSError:
            raise QemuGone(str(folder)) from None
    if answer != b"ok\n":
        raise QemuGone(str(folder))


def _connected(folder: Path, name: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(_PATIENCE)
    try:
        link.connect(str(folder / name))
    except (FileNotFoundError, NotADirectoryError, ConnectionError):
        link.close()
        raise QemuGone(str(folder)) from None
    except OSError as error:
        link.close()
        raise QemuError(f"{folder / name}: cannot be reached: {error.strerror or error}") from None
    return link
