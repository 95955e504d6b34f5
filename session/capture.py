"""The capture file (.rvt): the bytes of each sink and everything needed to read them, on another machine, next year.

A ZIP container with one description, capture.json, and one member for each sink and each stretch of code that is not
in the ELF. docs/capture-format.md documents it; the JSON is written and read in `session.capture_json`.
"""

import io
import json
import lzma
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from rvtrace_gdb.session import capture_json
from rvtrace_gdb.session.capture_json import Member
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.support import memory
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.memory import OutOfMemory
from rvtrace_gdb.support.output import OutputError, replacing
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.support.text import why_not

DESCRIPTION_LIMIT = 1 << 24  # bytes; no description is that long
LIMIT, LIMIT_VARIABLE = 1 << 31, "RVTRACE_CAPTURE_LIMIT"
"""How many bytes a capture may unpack to, and the environment variable that says it otherwise."""

_PIECE = 1 << 20  # bytes
# zipfile answers damaged containers with whatever its parsing ran into.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)


class CaptureError(RvtraceError):
    """A capture file that cannot be read or written; *file* is its name."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file, self.problem = file, problem


def save(capture: Capture, path: str | Path, progress: Progress = silent) -> None:
    """Write *capture* to *path*: the whole file or, when that fails, nothing. Raises `CaptureError`.

    A piece at a time: the bytes of sinks may be mapped from files that memory has no room for.
    """
    try:
        with replacing(str(path)) as file:
            if str(path) != "-" and os.path.isfile(file.name):  # devices do not know where they are
                _write(capture, file, progress)
            else:
                file.write(dump(capture))
    except OutputError as error:
        raise CaptureError(error.path, error.problem) from None


def dump(capture: Capture) -> bytes:
    """The bytes of a capture file; the same for the same capture."""
    buffer = io.BytesIO()
    _write(capture, buffer, silent)
    return buffer.getvalue()


def _write(capture: Capture, file: BinaryIO, progress: Progress) -> None:
    description, members = capture_json.describe(capture)
    text = json.dumps(description, indent=1).encode()  # ASCII: a path may have bytes that are no text
    total, done = len(text) + sum(map(len, members.values())), 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as container:
        for name, data in [(capture_json.NAME, text), *members.items()]:
            entry = zipfile.ZipInfo(name)  # with ZIP's earliest date: when it was made is in the description
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.file_size = len(data)
            with container.open(entry, "w") as member:
                for at in range(0, len(data), _PIECE):
                    progress("writing the capture", done + at, total)
                    member.write(data[at : at + _PIECE])
            done += len(data)


def load(path: str | Path, progress: Progress = silent) -> Capture:
    """Read the capture at *path*. Raises `CaptureError` with one line for anything that is not a sound capture, and
    BadLimit.
    """
    try:
        content = Path(path).read_bytes()
    except MemoryError:
        raise _too_large(str(path)) from None
    except (OSError, ValueError) as error:
        raise CaptureError(str(path), f"cannot be read: {why_not(error)}") from None
    return parse(content, str(path), progress)


def parse(content: bytes, file: str, progress: Progress = silent) -> Capture:
    """The capture in the bytes of a capture file; *file* is its name in messages. Raises `CaptureError`, BadLimit."""
    if not content.startswith(b"PK\x03\x04"):
        made_by = "written by `trace save`; `rvtrace import` makes one of raw trace bytes"
        raise CaptureError(file, "is empty" if not content else f"is not a capture file (.rvt, {made_by})")
    try:
        container = zipfile.ZipFile(io.BytesIO(content))
    except _DAMAGE:
        raise CaptureError(file, "is truncated or damaged: the list of its members is not readable") from None
    with container:
        members = _Members(container, file, progress)
        try:
            return capture_json.read(members.read(Member(capture_json.NAME, None)), members.read)
        except capture_json.BadDescription as error:
            raise CaptureError(file, str(error)) from None
        except MemoryError:
            raise _too_large(file) from None


class _Members:
    """Reads the members of a capture, as long as they are not too much. Raises BadLimit."""

    def __init__(self, container: zipfile.ZipFile, file: str, progress: Progress) -> None:
        self._container, self._file, self._progress = container, file, progress
        self._left = self._limit = memory.limit_of(os.environ, LIMIT_VARIABLE, LIMIT)

    def read(self, member: Member) -> bytes:
        """Raises CaptureError."""
        entry = _entry(self._container, member, self._file)
        self._left -= entry.file_size
        if self._left < 0:
            needed, limit = memory.size(self._limit - self._left), memory.size(self._limit)
            raise CaptureError(
                self._file,
                f"unpacks to {needed} or more, which a small file may only say; no more than {limit} are unpacked:"
                f" {LIMIT_VARIABLE}={_enough(self._limit - self._left)} in the environment raises that",
            )
        return _unpacked(self._container, entry, self._file, self._progress)


def _enough(count: int) -> str:
    return f"{-(-count // (1 << 30))}G"


def _too_large(file: str) -> CaptureError:
    return CaptureError(file, f"cannot be read: {OutOfMemory()}")


def _entry(container: zipfile.ZipFile, member: Member, file: str) -> zipfile.ZipInfo:
    """One member, which has the size it should have."""
    try:
        entry = container.getinfo(member.name)
    except KeyError:
        what = "is not a capture file" if member.name == capture_json.NAME else "is incomplete"
        raise CaptureError(file, f"{what}: it has no member {member.name}") from None
    limit = DESCRIPTION_LIMIT if member.size is None else member.size
    if entry.file_size > limit or (member.size is not None and entry.file_size != member.size):
        raise CaptureError(file, f"is damaged: {member.name} has {entry.file_size} bytes, not {limit}")
    return entry


def _unpacked(container: zipfile.ZipFile, entry: zipfile.ZipInfo, file: str, progress: Progress) -> bytes:
    """Its bytes, the checksum verified."""
    data = io.BytesIO()  # whose bytes are taken without another copy
    try:
        with container.open(entry) as packed:
            while piece := packed.read(_PIECE):
                data.write(piece)
                progress("reading the capture", data.tell(), entry.file_size)
    except _DAMAGE:
        data.truncate(0)
    if len(data.getbuffer()) != entry.file_size:
        raise CaptureError(file, f"is truncated or damaged: {entry.filename} cannot be read")
    return data.getvalue()
