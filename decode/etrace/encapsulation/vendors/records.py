"""Reading of transports in which all records have the same size."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from rvtrace_gdb.decode.etrace.encapsulation.interface import CutOff, EncapsulatedItem
from rvtrace_gdb.decode.stepping.reports import LostBytes

_SLICE = 1 << 16  # bytes processed at once


class RecordDeframer(ABC):
    """Reads records of *size* bytes. The first one starts at *start*, modulo their size. See `Deframer`."""

    def __init__(self, size: int, start: int) -> None:
        self.total = 0
        self._size = size
        self._tail = b""
        self._skip = start % size

    def feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def _feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        offset = self.total - len(self._tail)
        self.total += len(data)
        data, at = self._tail + data, 0
        if self._skip:
            if len(data) < self._skip:
                self._tail = data
                return
            at, self._skip = self._skip, 0
            yield LostBytes(offset, at, "")
        stop = len(data) - (len(data) - at) % self._size
        self._tail = data[stop:]
        yield from self._items([data[i : i + self._size] for i in range(at, stop, self._size)], offset + at)

    def finish(self) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        tail, self._tail = self._tail, b""
        if tail:
            yield CutOff(self.total - len(tail), len(tail), "the last record is cut off")

    @abstractmethod
    def _items(self, records: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """Return the items of consecutive records, the first of which starts at *offset*."""
