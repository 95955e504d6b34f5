"""Where packets start in bytes that start anywhere: at the beginning of a ring buffer that wrapped, behind damage.

Nothing is guessed. A place counts only when a packet must start there, provided the bytes looked at are undamaged.
"""

from collections.abc import Sequence
from typing import Protocol

_NOWHERE = "there is no place at which a packet must start"


class Search(Protocol):
    """Looks for a place where a packet starts.

    nothing  what to say when the trace ends before there is one
    filling  so many bytes just before the place found are filling for certain
    """

    nothing: str
    filling: int = 0

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """The index in *data* (at most its length) where a packet starts.

        data[at:] continues what was looked at before; *offset*: where in the trace data[0] is.
        """
        ...


class Merging(Search):
    """Follows the packets from every place where the first could start, until all ways have led to the same place.

    Headers say how long packets are, so from each place there is one way, and ways that meet stay together: where only
    one is left a packet starts, whichever was the true one. A way ends at a byte that is no header. This needs no
    synchronization sequence, and no more than one: in a row of null bytes as long as a packet all ways meet
    (e-trace-encap, "Synchronization").
    """

    nothing = _NOWHERE

    def __init__(self, sizes: Sequence[int], start: int, *, unit: int = 1, phase: int = 0) -> None:
        """*sizes*: of a packet, by its first byte; 0: no packet starts so. *start*: where in the trace to begin.

        Packets start where (offset - *phase*) is a multiple of *unit*.
        """
        self._sizes = sizes
        first = start + (phase - start) % unit
        self._ways = set(range(first, start + max(sizes), unit))  # one of these is the first place

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `Search`."""
        end = offset + len(data)
        for place in range(offset + at, end):
            if len(self._ways) == 1:
                break
            if place in self._ways:
                self._ways.remove(place)
                if size := self._sizes[data[place - offset]]:
                    self._ways.add(place + size)
        if len(self._ways) == 1:
            (only,) = self._ways
            return only - offset if only <= end else None
        return None


class AfterZeros(Search):
    """Looks for *count* bytes of 0: what comes behind them is filling or the start of a packet.

    Where they are not the first bytes looked at, some of them may be the end of a packet.
    """

    def __init__(self, count: int) -> None:
        self.nothing = f"there are no {count} zero bytes in a row, behind which a packet starts"
        self._count = count
        self._zeros = 0  # at the end of what was looked at
        self._only_zeros = True  # were looked at

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `Search`."""
        leading = len(data) - at - len(data[at:].lstrip(b"\0"))
        if self._zeros + leading >= self._count:
            self.filling = self._count if self._only_zeros else 0
            return at + self._count - self._zeros
        found = data.find(bytes(self._count), at)
        if found >= 0:
            return found + self._count
        trailing = len(data) - len(data.rstrip(b"\0"))
        only_zeros = leading == len(data) - at
        self._zeros = self._zeros + leading if only_zeros else trailing
        self._only_zeros = self._only_zeros and only_zeros
        return None


class Nowhere(Search):
    """Waits for the next seam: where blocks begin there is no other way to know."""

    nothing = _NOWHERE

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `Search`."""
        return None
