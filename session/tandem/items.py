"""The groups of a tandem trace by number, for `trace dump`; bytes that are no group have the number of the group behind
them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.framing import Hole
from rvtrace_gdb.decode.tandem.group import Group
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.problems import Problem
from rvtrace_gdb.decode.tandem.trace import Trace
from rvtrace_gdb.session.captured import TandemPort
from rvtrace_gdb.support.progress import Progress, silent

MOST_RAW = 96
"""Bytes that are shown of what is no group, and of a group."""


class Item(NamedTuple):
    """Consecutive bytes of a trace: a group, or bytes that are none (*group* None; *why* there is none).

    *number*: of the group, counted from 1. *raw*: its bytes, of those that are none at most the first `MOST_RAW`.
    *problems*: rules that it breaks.
    """

    offset: int
    size: int
    number: int
    raw: bytes
    group: Group | None = None
    why: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def source(self) -> None:
        """A tandem trace does not tell who sends it."""

    @property
    def is_idle(self) -> bool:
        """There is no filling."""
        return False


class Itemizer:
    """Takes a trace apart, fed in pieces, in bounded memory. *wrapped*: it may begin inside a group."""

    def __init__(self, parameters: Parameters, *, wrapped: bool = False) -> None:
        self._trace = Trace(parameters, wrapped=wrapped)
        self._head = b""  # the first bytes that are in no item yet
        self._base = self._before = 0  # bytes and groups that the trace has let go of

    def feed(self, data: bytes) -> Iterator[Item]:
        self._trace.feed(data)
        return self._fresh()

    def finish(self) -> Iterator[Item]:
        self._trace.finish()
        return self._fresh()

    def _fresh(self) -> Iterator[Item]:
        """What was found since."""
        trace = self._trace
        found = [self._placed(item) for item in _items(trace, 0, len(trace), trace.losses, self._head)]
        self._before += len(trace)
        trace.losses.clear()
        self._head = _bytes(trace, trace.pending, MOST_RAW, self._head)
        self._base += trace.forget(len(trace), 0)
        return iter(found)

    def _placed(self, item: Item) -> Item:
        """As it is in the whole trace."""
        offset, group = self._base + item.offset, item.group
        placed = None if group is None else group._replace(offset=offset)
        return item._replace(offset=offset, number=self._before + item.number, group=placed)


def _items(trace: Trace, first: int, last: int, losses: list[Hole], head: bytes = b"") -> Iterator[Item]:
    """The groups *first* to *last* - 1, and losses among and behind them. *head*: see `_bytes`."""
    for loss in losses:
        yield from (_item(trace, number) for number in range(first, loss.group))
        first = max(first, loss.group)
        raw = _bytes(trace, loss.offset, min(loss.length, MOST_RAW), head)
        yield Item(loss.offset, loss.length, loss.group + 1, raw, None, loss.why)
    yield from (_item(trace, number) for number in range(first, last))


def _item(trace: Trace, number: int) -> Item:
    group = trace.group(number)
    raw = bytes(trace.data[group.offset : group.offset + group.size])
    return Item(group.offset, group.size, number + 1, raw, group, problems=trace.problems(number))


def _bytes(trace: Trace, begin: int, size: int, head: bytes) -> bytes:
    """Up to so many bytes of a trace; *head*: the first ones where they were let go of."""
    if begin >= 0:
        return bytes(trace.data[begin : begin + size])
    known = head[:-begin]
    return (known + trace.data[:size] if len(known) == -begin else known)[:size]


class Groups:
    """All groups of *data*, numbered from 1. Raises what *progress* raises."""

    def __init__(self, data: bytes, how: TandemPort, *, wrapped: bool = False, progress: Progress = silent) -> None:
        self.data, self.how = data, how
        self._trace = Trace.of(data, how.parameters, progress, wrapped=wrapped)

    def __len__(self) -> int:
        """The last number."""
        losses = self._trace.losses
        return max(len(self._trace), losses[-1].group + 1 if losses else 0)

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Item]]:
        """(number, item) for the numbers *begin* to *end* - 1."""
        losses = self._trace.losses
        wanted = losses[bisect_left(losses, begin - 1, key=_group) : bisect_left(losses, end - 1, key=_group)]
        last = min(end - 1, len(self._trace))
        return ((item.number, item) for item in _items(self._trace, begin - 1, last, wanted))

    def number_at(self, offset: int) -> int:
        """The number of what byte *offset* is part of; one more than there are when it is behind the end."""
        if offset >= len(self.data):
            return len(self) + 1
        losses = self._trace.losses
        before = bisect_right(losses, offset, key=attrgetter("offset")) - 1
        if before >= 0 and offset < losses[before].offset + losses[before].length:
            return losses[before].group + 1
        return bisect_right(self._trace.offsets, offset)


_group = attrgetter("group")
