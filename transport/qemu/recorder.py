"""The recorder of the instructions that QEMU executes: the shared memory it writes to, and the sockets in its folder.

A recorder (plugin/, or the reader of QEMU's log) writes what each hart executed into shared memory; see
plugin/plugin.c. While QEMU runs, requests are sent to the recorder and to QEMU over sockets.

ring = Ring.open(folder)
words = ring.words(hart, ring.oldest(hart), ring.written(hart))
"""

import json
import mmap
import os
import socket
import struct
import time
from array import array
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from rvtrace_gdb.support.errors import RvtraceError


class QemuError(RvtraceError):
    """QEMU cannot be started as requested, or does not do what was requested."""


class QemuGone(QemuError):
    """QEMU has ended, or what `rvtrace qemu` wrote about it is from an earlier run. *folder*: where its recorder was.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"{folder}: QEMU is not running there any more: start it again with `rvtrace qemu`")


MAGIC = b"RVTRACE1"
TAG, FIELD = 3 << 30, (1 << 30) - 1
"""The top two bits of a word are its kind, the others its value."""
BLOCK, DATA, TRAP, PARTIAL = 0 << 30, 1 << 30, 2 << 30, 3 << 30
RECORDING_BEGAN = 1 << 29
ADDRESS_SPACE = 1 << 28
SPACE_WORDS = 3
"""The value of a word TRAP with which recording began."""
TRAP_WORDS = 9
"""The number of words DATA after a word TRAP."""
NAMES = RING, CODE, LOG, CONTROL, QMP = "ring", "code", "log", "control", "qmp"
"""The names of the files in a recorder's folder."""
MEMORY = "memory"
"""The file through which memory is read."""

_HEADER, _PLACE, _PAGE, _WORD = 4096, 64, 4096, 4  # bytes
_WORDS, _HARTS, _FLAGS, _RECORDING, _ENDED, _READER, _CODE_BYTES, _FAILED = range(8, 72, 8)
_WRITTEN, _READ, _BEGAN = 0, 8, 16
_STALLING = 1
_U64 = struct.Struct("<Q")


class Ring:
    """The recorded words of all harts. Words are numbered from the first one ever written to a hart's ring."""

    def __init__(self, memory: mmap.mmap, folder: Path) -> None:
        self._memory, self.folder = memory, folder
        self.size, self.harts = self._get(_WORDS), self._get(_HARTS)
        """Words of each ring, and how many there are."""
        self._first = _HEADER + -(-self.harts * _PLACE // _PAGE) * _PAGE

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the memory of the recorder in *folder*. Raises QemuGone, QemuError."""
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
        """Create the memory as plugin.c does. *words*: a power of two."""
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
        """Whether QEMU has ended in an orderly way, so that everything it executed is recorded."""
        return bool(self._get(_ENDED))

    @property
    def failed(self) -> int:
        """The errno for which the recorder cannot store the executed code; 0: it can."""
        return self._get(_FAILED)

    @property
    def stalling(self) -> bool:
        """Whether a hart waits for the reader; else the oldest words are overwritten."""
        return bool(self._get(_FLAGS) & _STALLING)

    @property
    def code_bytes(self) -> int:
        """How many bytes of the file CODE are complete."""
        return self._get(_CODE_BYTES)

    def written(self, hart: int) -> int:
        """Return how many words were ever written."""
        return self._get(self._field_offset(hart, _WRITTEN))

    def oldest(self, hart: int) -> int:
        """Return the number of the oldest word that is still in the ring."""
        return max(self.written(hart) - self.size, 0)

    def began(self, hart: int) -> int:
        """Return how many instructions of the last block had begun at the last synchronization."""
        return self._get(self._field_offset(hart, _BEGAN))

    def words(self, hart: int, begin: int, end: int) -> "array[int]":
        """Return the words numbered *begin* to *end* - 1, the first of which may have been overwritten: see `oldest`.
        """
        found = array("I")
        base = self._first + hart * self.size * _WORD
        while begin < end:
            at = begin % self.size
            count = min(end - begin, self.size - at)
            found.frombytes(self._memory[base + at * _WORD : base + (at + count) * _WORD])
            begin += count
        return found

    def release(self, hart: int, number: int) -> None:
        """Report that the words before this number were read: a hart that waits continues."""
        _U64.pack_into(self._memory, self._field_offset(hart, _READ), number)

    # What the writer does

    def write(self, hart: int, words: "array[int]") -> None:
        """Append words; if they are more than a ring holds, the newest are kept."""
        written = self.written(hart)
        kept = words[-self.size :]
        at, base = (written + len(words) - len(kept)) % self.size, self._first + hart * self.size * _WORD
        count = min(len(kept), self.size - at)
        self._memory[base + at * _WORD : base + (at + count) * _WORD] = kept[:count].tobytes()
        self._memory[base : base + (len(kept) - count) * _WORD] = kept[count:].tobytes()
        _U64.pack_into(self._memory, self._field_offset(hart, _WRITTEN), written + len(words))

    def room(self, hart: int) -> int:
        """Return how many words can be written before the writer has to wait for the reader."""
        return self.size - (self.written(hart) - self._get(self._field_offset(hart, _READ)))

    def record(self, on: bool) -> None:
        _U64.pack_into(self._memory, _RECORDING, on)

    def end(self) -> None:
        _U64.pack_into(self._memory, _ENDED, 1)

    def fail(self, errno: int) -> None:
        _U64.pack_into(self._memory, _FAILED, errno)

    def set_began(self, hart: int, count: int) -> None:
        _U64.pack_into(self._memory, self._field_offset(hart, _BEGAN), count)

    def set_code_bytes(self, size: int) -> None:
        _U64.pack_into(self._memory, _CODE_BYTES, size)

    def _field_offset(self, hart: int, field: int) -> int:
        return _HEADER + hart * _PLACE + field

    def _get(self, at: int) -> int:
        value: int = _U64.unpack_from(self._memory, at)[0]
        return value


_PATIENCE = 20.0  # seconds; both answer at once unless the machine is very busy
_ANSWER_LIMIT = 1 << 20  # bytes
_LONGEST_END = 5.0  # seconds


def synchronize(folder: Path) -> None:
    """Bring everything that was executed into the ring, with each hart's position in its last block. Call it only while
    the program is stopped. Raises QemuError.
    """
    _command(folder, "settle")


def set_recording(folder: Path, on: bool) -> None:
    """Begin or end recording. Raises QemuError."""
    _command(folder, "on" if on else "off")


def is_running(folder: Path) -> bool:
    """Return whether QEMU runs the program now; a debugger stops it. Raises QemuError."""
    try:
        return bool(_qmp(folder, "query-status")["running"])
    except (KeyError, TypeError):
        raise QemuGone(str(folder)) from None


def run(folder: Path) -> None:
    """Let a QEMU that is stopped run. Raises QemuError."""
    _qmp(folder, "cont")


def registers(folder: Path, hart: int) -> str:
    """Return the registers of a hart as QEMU's monitor lists them. Raises QemuError."""
    return str(_qmp(folder, "human-monitor-command", {"command-line": "info registers", "cpu-index": hart}))


def memory(folder: Path, address: int, size: int) -> bytes:
    """Return the content of physical memory; zeros where nothing is. Raises QemuError."""
    return _saved_memory(folder, "pmemsave", address, size)


def virtual_memory(folder: Path, hart: int, address: int, size: int) -> bytes:
    """Return memory as a hart sees it now, up to where nothing is mapped for it. Raises QemuError."""
    return _saved_memory(folder, "memsave", address, size, {"cpu-index": hart})


def _saved_memory(
    folder: Path, command: str, address: int, size: int, more: Mapping[str, object] = MappingProxyType({})
) -> bytes:
    file = folder / MEMORY
    try:
        try:
            _qmp(folder, command, {"val": address, "size": size, "filename": str(file), **more})
        except QemuError:
            if not more or not file.exists():
                raise
        return file.read_bytes()
    except OSError as error:
        raise QemuError(f"{file}: cannot be read: {error.strerror}") from None
    finally:
        file.unlink(missing_ok=True)


def _qmp(folder: Path, command: str, arguments: Mapping[str, object] | None = None) -> Any:
    """Return what QEMU answers to a command. Raises QemuError.

    Source: QEMU's documentation of QMP: a greeting, `qmp_capabilities`, then commands; events may come in between.
    """
    commands: list[dict[str, object]] = [{"execute": "qmp_capabilities"}, {"execute": command}]
    commands[1] |= {} if arguments is None else {"arguments": arguments}
    with closing(_connected(folder, QMP)) as link, link.makefile("r", encoding="utf-8") as lines:
        try:
            _json(lines.readline(_ANSWER_LIMIT))
            for each in commands:
                link.sendall(json.dumps(each).encode() + b"\n")
                answer = _json(lines.readline(_ANSWER_LIMIT))
                while "event" in answer:
                    answer = _json(lines.readline(_ANSWER_LIMIT))
            return answer["return"]
        except TimeoutError:
            raise QemuError(f"{folder / QMP}: QEMU does not answer") from None
        except (OSError, ValueError, KeyError, TypeError):  # cut off in the middle: it is just ending
            raise QemuGone(str(folder)) from None


def wait_for_end(ring: Ring) -> None:
    """Wait until a QEMU that does not answer any more has ended: it records the last instructions after it has stopped
    answering. Returns at once if its process is gone.
    """
    deadline = time.monotonic() + _LONGEST_END
    while not ring.ended and time.monotonic() < deadline:
        try:
            _connected(ring.folder, CONTROL).close()
        except QemuError:
            return
        time.sleep(0.005)


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
