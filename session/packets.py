"""The packets of a captured E-Trace by number, for who looks at pages of them.

What a packet stands for depends on those before it, and where it begins on the encapsulation, so one pass over the
trace keeps every so often a copy of what takes it apart; a page is then made from the copy before it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.session.captured import TandemPort
from rvtrace_gdb.session.ctr.numbered import Entries
from rvtrace_gdb.session.etrace import ETrace
from rvtrace_gdb.session.formats import AnyHow, Itemizer, itemizer
from rvtrace_gdb.session.messages import Messages
from rvtrace_gdb.session.tandem.items import Groups
from rvtrace_gdb.support.progress import Progress, silent

_SLICE = 1 << 14  # bytes between two copies


class Numbered(Protocol):
    """Messages or packets by number, from 1 on."""

    data: bytes

    @property
    def how(self) -> AnyHow: ...
    def __len__(self) -> int: ...
    def items(self, begin: int, end: int) -> Iterator[tuple[int, Any]]: ...
    def number_at(self, offset: int) -> int: ...


def numbered(data: bytes, how: AnyHow, xlen: int, *, wrapped: bool = False, progress: Progress = silent) -> Numbered:
    """The messages of a trace of any format. Raises what *progress* raises."""
    if isinstance(how, CtrInForce):
        return Entries(data, how)
    if isinstance(how, TandemPort):
        return Groups(data, how, wrapped=wrapped, progress=progress)
    if isinstance(how, ETrace):
        return Packets(data, how, xlen, wrapped=wrapped, progress=progress)
    return Messages(data, how, xlen, wrapped=wrapped, progress=progress)


class _Note(NamedTuple):
    """What takes the trace apart, before byte *at*. Item *number* is the next, and does not begin before *offset*."""

    at: int
    number: int
    offset: int
    itemizer: Itemizer


class Packets:
    """All items of *data* (packets, filling, bytes that are neither), numbered from 1. Raises what *progress* raises.

    *how*: it was made; *wrapped*: it starts anywhere.
    """

    def __init__(
        self, data: bytes, how: ETrace, xlen: int, *, wrapped: bool = False, progress: Progress = silent
    ) -> None:
        self.data, self.how = data, how
        self._notes: list[_Note] = []
        self._count = end = 0
        taker = itemizer(how, xlen, wrapped=wrapped)
        for at in range(0, len(data), _SLICE):
            self._notes.append(_Note(at, self._count + 1, end, deepcopy(taker)))
            for item in taker.feed(data[at : at + _SLICE]):
                self._count += 1
                end = item.end
            progress("reading packets", at, len(data))
        self._count += sum(1 for _ in taker.finish())

    def __len__(self) -> int:
        return self._count

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Any]]:
        """(number, item) for the numbers *begin* to *end* - 1."""
        note = bisect_right(self._notes, begin, key=attrgetter("number")) - 1
        if note >= 0:
            first = self._notes[note].number
            yield from islice(enumerate(self._from(note), first), begin - first, max(end - first, 0))

    def number_at(self, offset: int) -> int:
        """The number of the item that byte *offset* is part of; one more than there are when it is behind the end."""
        note = bisect_right(self._notes, offset, key=attrgetter("offset")) - 1
        if note >= 0:
            for number, item in enumerate(self._from(note), self._notes[note].number):
                if offset < item.end:
                    return number
        return self._count + 1

    def _from(self, note: int) -> Iterator[Any]:
        start = self._notes[note]
        taker = deepcopy(start.itemizer)
        for at in range(start.at, len(self.data), _SLICE):
            yield from taker.feed(self.data[at : at + _SLICE])
        yield from taker.finish()
