"""The header of perf.data: its byte order, the attributes of its events, the features behind the data.

A file has a header of 104 bytes, which says where attributes and data are; what is written to a pipe has one of 16
bytes, and attributes and features are records (Linux, tools/perf/Documentation/perf.data-file-format.txt).
"""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from rvtrace_gdb.session.perf_data.layout import AttrFlag, HeaderFeature, SampleType
from rvtrace_gdb.support.errors import RvtraceError

_MAGIC = b"PERFILE2"
_FILE_HEADER, _PIPE_HEADER = 104, 16
_ATTR_BYTES = 64  # of the first version; later ones are longer
_MOST_ATTRS = 1 << 16
_MOST_TEXT = 1 << 24  # bytes of a feature
_PIECE = 1 << 20  # bytes read at once: a damaged file may say any size


class BadPerfData(RvtraceError):
    """A file is not perf.data, or damaged. *offset*: where, in bytes from its beginning."""

    def __init__(self, path: str, offset: int, why: str) -> None:
        self.path, self.offset = path, offset
        super().__init__(f"{path}: byte {offset}: {why}")


class FileSection(NamedTuple):
    """A part of the file, in bytes."""

    offset: int
    size: int


class EventAttr(NamedTuple):
    """What an event was asked to record (`perf_event_attr`). *ids*: by which samples name it."""

    type: int
    config: int
    sample_type: SampleType
    read_format: int
    flags: AttrFlag
    branch_sample_type: int
    ids: tuple[int, ...] = ()


@dataclass
class PerfHeader:
    """What is known of the whole file.

    order     "<" or ">", as `struct` has it
    data      where the records are; a *pipe* has them up to its end, and its size here is 0
    features  the contents of the features, by their numbers
    """

    order: str
    data: FileSection
    pipe: bool
    attrs: list[EventAttr] = field(default_factory=list)
    features: dict[int, bytes] = field(default_factory=dict)


def string_at(content: bytes, at: int, order: str) -> tuple[str, int]:
    """Return the text at an offset, and the offset behind it: 32 bits of length, and that many bytes, filled with
    zeros.
    """
    (size,) = struct.unpack_from(order + "I", content, at)
    text = content[at + 4 : at + 4 + size].split(b"\0")[0]
    return text.decode("utf-8", "surrogateescape"), at + 4 + size


class PerfFile:
    """An open perf.data. It is read forward only, unless it is a file whose attributes lie elsewhere. *reopen*: opens
    it once more; None: it stays open, or cannot be read again.

    Raises BadPerfData when it is not one, or ends inside its header.
    """

    def __init__(self, stream: BinaryIO, path: str, reopen: Callable[[], BinaryIO] | None = None) -> None:
        self.stream, self.path, self.reopen = stream, path, reopen
        self.offset = 0
        self.header = self._read_header()

    def read(self, size: int) -> bytes:
        """Return the next *size* bytes, fewer at the end of the file."""
        parts: list[bytes] = []
        missing = size
        while missing and (part := self.stream.read(min(missing, _PIECE))):
            parts.append(part)
            missing -= len(part)
        self.offset += size - missing
        return b"".join(parts)

    def read_all(self, size: int, what: str) -> bytes:
        """Return the next *size* bytes. Raises BadPerfData when the file ends before."""
        at = self.offset
        found = self.read(size)
        if len(found) < size:
            raise BadPerfData(self.path, at, f"ends after {len(found)} of the {size} bytes of {what}")
        return found

    def seek(self, offset: int) -> None:
        """Go to a place of the file, to its end if it is not that long; a pipe can only go forward."""
        if self.stream.seekable():
            self.offset = self.stream.seek(min(offset, self._size()))
            return
        while self.offset < offset and self.read(min(offset - self.offset, _PIECE)):
            pass

    def left(self) -> int:
        """Return how many bytes there are behind this place of a file, which is no pipe."""
        end = self._size()
        self.stream.seek(self.offset)
        return max(end - self.offset, 0)

    def _read_header(self) -> PerfHeader:
        start = self.read_all(_PIPE_HEADER, "the header")
        order = "<" if start[:8] == _MAGIC else ">"
        if start[:8] not in (_MAGIC, _MAGIC[::-1]):
            raise BadPerfData(self.path, 0, f"is no perf.data: it begins with {start[:8]!r}, not with {_MAGIC!r}")
        (size,) = struct.unpack(order + "Q", start[8:])
        if size == _PIPE_HEADER:
            return PerfHeader(order, FileSection(_PIPE_HEADER, 0), pipe=True)
        if size != _FILE_HEADER:
            raise BadPerfData(
                self.path, 8, f"a header of {size} bytes is not known, only those of 104, and of 16 in a pipe"
            )
        if not self.stream.seekable():
            raise BadPerfData(
                self.path, 8, "is a file, not what perf writes to a pipe: give its name, or `perf record -o -`"
            )
        rest = self.read_all(_FILE_HEADER - _PIPE_HEADER, "the header")
        attr_size, *sections = struct.unpack_from(order + "7Q", rest)
        attrs, data = FileSection(*sections[:2]), FileSection(*sections[2:4])
        header = PerfHeader(order, data, pipe=False)
        header.attrs = self._read_attrs(attrs, attr_size, order)
        header.features = self._read_features(data, rest[56:88], order)
        return header

    def _read_attrs(self, section: FileSection, size: int, order: str) -> list[EventAttr]:
        if size < _ATTR_BYTES + 16 or section.size % size or section.size // size > _MOST_ATTRS:
            raise BadPerfData(self.path, 16, f"attributes of {size} bytes do not fill a section of {section.size}")
        self.seek(section.offset)
        entries = self.read_all(section.size, "the attributes")
        return [self._read_attr(entries[at : at + size], order) for at in range(0, len(entries), size)]

    def _read_attr(self, entry: bytes, order: str) -> EventAttr:
        attr = event_attr(entry[:-16], order)
        ids = FileSection(*struct.unpack(order + "2Q", entry[-16:]))
        if ids.size > 8 * _MOST_ATTRS:
            raise BadPerfData(self.path, ids.offset, f"{ids.size} bytes of IDs are too many for one event")
        self.seek(ids.offset)
        found = self.read_all(ids.size - ids.size % 8, "the IDs of an event")
        return attr._replace(ids=struct.unpack(f"{order}{len(found) // 8}Q", found))

    def _read_features(self, data: FileSection, bits: bytes, order: str) -> dict[int, bytes]:
        """Return the features of a file. One that lies beyond its end, in a file that was cut, is left out."""
        words = struct.unpack(order + "4Q", bits)
        numbers = [bit for bit in range(256) if words[bit // 64] >> bit % 64 & 1]
        self.seek(data.offset + data.size)
        table = self.read(16 * len(numbers))
        found: dict[int, bytes] = {}
        for place, number in enumerate(numbers[: len(table) // 16]):
            offset, size = struct.unpack_from(order + "2Q", table, 16 * place)
            if number != HeaderFeature.AUXTRACE and size <= _MOST_TEXT and offset + size <= self._size():
                self.seek(offset)
                found[number] = self.read(size)
        return found

    def _size(self) -> int:
        return self.stream.seek(0, os.SEEK_END)


def event_attr(content: bytes, order: str) -> EventAttr:
    """Return an attribute from a `perf_event_attr` of any version, which has at least 64 bytes."""
    kind, _, config, _, sample_type, read_format, flags = struct.unpack_from(order + "2I5Q", content)
    branches = struct.unpack_from(order + "Q", content, 72)[0] if len(content) >= 80 else 0
    return EventAttr(kind, config, SampleType(sample_type), read_format, AttrFlag(flags), branches)
