"""What decoders of every format take and give: the code that ran, bytes that are no packet, one history per hart."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.history import Accounting, Context, History, HistoryBuilder
from rvtrace_gdb.decode.image import Image


class Program(Protocol):
    """The code a hart runs, which may be another in each context. An `Image` is one that is the same in all."""

    @property
    def xlen(self) -> int: ...

    @property
    def path(self) -> str: ...

    @property
    def partial(self) -> bool: ...

    def image_of(self, context: Context) -> Image: ...


class Offsets(Protocol):
    """Where frames are in the trace."""

    def of(self, index: int) -> int:
        """The byte offset of frame *index*; cheap where asked for in rising order."""
        ...


class Later:
    """Of frames of which the first *skipped* are left out."""

    def __init__(self, offsets: Offsets, skipped: int) -> None:
        self._offsets = offsets
        self._skipped = skipped

    def of(self, index: int) -> int:
        """The byte offset of frame *index*."""
        return self._offsets.of(index + self._skipped)


Builders = Callable[[int], HistoryBuilder]
"""What collects the history of each source."""


def whole(source: int) -> HistoryBuilder:
    """Histories are asked for in the end."""
    return HistoryBuilder()


class Lost(NamedTuple):
    """Bytes that are no frame: *length* of them from *offset* on."""

    offset: int
    length: int
    why: str


class Losses:
    """Bytes no hart can use, and any may have sent: each hart is told when it speaks the next time.

    Of traces without an end, too, it takes little memory, if `forget` is called when it is `full`.
    """

    def __init__(self) -> None:
        self._kept: list[Lost] = []
        self._lengths = [0]  # bytes of all losses before each that is kept
        self._forgotten = 0  # losses that are not kept any more
        self._first: Lost | None = None
        self._told: dict[int, int] = {}  # how many losses each hart was told of

    def add(self, lost: Lost) -> None:
        """One more."""
        self._first = self._first or lost
        self._kept.append(lost)
        self._lengths.append(self._lengths[-1] + lost.length)

    def missed(self, source: int) -> Lost | None:
        """What this hart was not told of yet, as one loss."""
        told = self._told.get(source, 0)
        count = self._forgotten + len(self._kept) - told
        if not count or self._first is None:
            return None
        self._told[source] = told + count
        at = told - self._forgotten
        first, before = (self._first, 0) if at < 0 else (self._kept[at], self._lengths[at])
        why = first.why if count == 1 else f"{first.why}, the first of {count} places"
        return Lost(first.offset, self._lengths[-1] - before, why)

    @property
    def full(self) -> bool:
        """Whether there are too many to keep."""
        return len(self._kept) >= _LOSSES_KEPT

    def forget(self) -> None:
        """All harts that ever spoke were told; others will be told of all."""
        self._forgotten += len(self._kept)
        self._kept.clear()
        self._lengths = self._lengths[-1:]


_LOSSES_KEPT = 1 << 14


class Streams(NamedTuple):
    """One history for each source found (0 where messages do not say theirs), and what became of all bytes."""

    histories: dict[int, History]
    accounting: Accounting
