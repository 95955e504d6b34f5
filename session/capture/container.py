"""The ZIP container of a capture: its members are written one after the other, and read up to a limit, each checked."""

import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import BinaryIO

from rvtrace_gdb.session.capture.json_document import NAME, Member
from rvtrace_gdb.support import system
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.system import OutOfMemory

DESCRIPTION_LIMIT = 1 << 24  # bytes; no description is longer
LIMIT, LIMIT_VARIABLE = 1 << 31, "RVTRACE_CAPTURE_LIMIT"
"""How many bytes a capture may unpack to, and the environment variable that says it otherwise."""

_PIECE = 1 << 20  # bytes
# Errors that zipfile raises for damaged containers.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError, KeyError, IndexError,
    TypeError, AttributeError, NotImplementedError, RuntimeError, OverflowError,
)  # fmt: skip


class CaptureError(RvtraceError):
    """A capture file that cannot be read or written; *file* is its name."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file, self.problem = file, problem


def write_members(file: BinaryIO, members: Sequence[tuple[str, bytes]], progress: Progress = silent) -> None:
    """Write a container; the same members give the same bytes."""
    total, done = sum(len(data) for _, data in members), 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as container:
        for name, data in members:
            entry = zipfile.ZipInfo(name)  # with ZIP's earliest date: the date of the capture is in the description
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.file_size = len(data)
            with container.open(entry, "w") as member:
                for at in range(0, len(data), _PIECE):
                    progress("writing the capture", done + at, total)
                    member.write(data[at : at + _PIECE])
            done += len(data)


class CaptureMembers:
    """Reads the members of a capture, up to a limit of bytes. Raises BadLimit."""

    def __init__(self, container: zipfile.ZipFile, file: str, progress: Progress) -> None:
        self._container, self._file, self._progress = container, file, progress
        self._left = self._limit = system.limit_of(os.environ, LIMIT_VARIABLE, LIMIT)

    def read(self, member: Member) -> bytes:
        """Return the bytes of a member. Raises CaptureError."""
        entry = _entry(self._container, member, self._file)
        self._left -= entry.file_size
        if self._left < 0:
            size = self._limit - self._left
            needed, limit = system.memory_size(size), system.memory_size(self._limit)
            raise CaptureError(
                self._file,
                f"unpacks to {needed} or more, or claims to; the limit is {limit}:"
                f" set {LIMIT_VARIABLE}={-(-size // (1 << 30))}G in the environment to raise the limit",
            )
        return _unpacked(self._container, entry, self._file, self._progress)


def too_large(file: str) -> CaptureError:
    return CaptureError(file, f"cannot be read: {OutOfMemory()}")


def _entry(container: zipfile.ZipFile, member: Member, file: str) -> zipfile.ZipInfo:
    """Return one member, and check its size."""
    try:
        entry = container.getinfo(member.name)
    except KeyError:
        what = "is not a capture file" if member.name == NAME else "is incomplete"
        raise CaptureError(file, f"{what}: it has no member {member.name}") from None
    limit = DESCRIPTION_LIMIT if member.size is None else member.size
    if entry.file_size > limit or (member.size is not None and entry.file_size != member.size):
        raise CaptureError(file, f"is damaged: {member.name} has {entry.file_size} bytes, not {limit}")
    return entry


def _unpacked(container: zipfile.ZipFile, entry: zipfile.ZipInfo, file: str, progress: Progress) -> bytes:
    """Return a member's bytes, with verified checksum."""
    data = io.BytesIO()  # the bytes are taken without another copy
    try:
        with container.open(entry) as packed:
            while piece := packed.read(_PIECE):
                data.write(piece)
                progress("reading the capture", data.tell(), entry.file_size)
    except DAMAGE:
        data.truncate(0)
    if len(data.getbuffer()) != entry.file_size:
        raise CaptureError(file, f"is truncated or damaged: {entry.filename} cannot be read")
    return data.getvalue()
