"""The messages of a captured trace by number, for who looks at pages of them.

What a message stands for depends on those before it, so one pass over the trace notes every so often how things stand;
a page is then made from the note before it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from rvtrace_gdb.decode.ntrace.items import Item, Itemizer, Known
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.support.progress import Progress, silent

_STRIDE = 1024  # items from note to note
_SLICE = 1 << 16  # bytes looked at between two signs of life


class _Note(NamedTuple):
    """How things stand before an item that starts at *offset*."""

    offset: int
    known: dict[int, Known]


class Messages:
    """All items of *data* (messages, filling, bytes that are neither), numbered from 1. Raises what *progress* raises.

    *options*: as for the decoder; *wrapped*: the trace starts anywhere.
    """

    def __init__(
        self, data: bytes, options: Options, xlen: int, *, wrapped: bool = False, progress: Progress = silent
    ) -> None:
        self.data, self.how = data, options
        self._xlen, self._wrapped = xlen, wrapped
        self._notes = [_Note(0, {})]
        itemizer = Itemizer(options, xlen, wrapped=wrapped)
        self._count = 0
        for item in _all(itemizer, data, 0, progress):
            self._count += 1
            if self._count % _STRIDE == 0:
                self._notes.append(_Note(item.end, dict(itemizer.known)))

    def __len__(self) -> int:
        return self._count

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Item]]:
        """(number, item) for the numbers *begin* to *end* - 1."""
        note = (begin - 1) // _STRIDE
        first = note * _STRIDE + 1
        yield from islice(enumerate(self._from(note), first), begin - first, max(end - first, 0))

    def number_at(self, offset: int) -> int:
        """The number of the item that byte *offset* is part of; one more than there are when it is behind the end."""
        note = bisect_right(self._notes, offset, key=lambda note: note.offset) - 1
        for number, item in enumerate(self._from(note), note * _STRIDE + 1):
            if offset < item.end:
                return number
        return self._count + 1

    def _from(self, note: int) -> Iterator[Item]:
        offset, known = self._notes[note]
        wrapped = self._wrapped and not note
        return _all(Itemizer(self.how, self._xlen, wrapped=wrapped, offset=offset, known=known), self.data, offset)


def _all(itemizer: Itemizer, data: bytes, offset: int, progress: Progress = silent) -> Iterator[Item]:
    for start in range(offset, len(data), _SLICE):
        yield from itemizer.feed(data[start : start + _SLICE])
        progress("reading messages", start, len(data))
    yield from itemizer.finish()
