"""When what ran, as far as the trace says."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from operator import lt
from typing import overload

_TIME_MASK = (1 << 64) - 1


class Times(Sequence[tuple[int, int]]):
    """(position, time) of each moment known, in rising order of positions: the time before the instruction there."""

    def __init__(self, positions: "array[int]", times: "array[int]") -> None:
        self._positions = positions
        self._times = times

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, i: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, i: slice) -> "Times": ...
    def __getitem__(self, i: int | slice) -> "tuple[int, int] | Times":
        if isinstance(i, slice):
            return Times(self._positions[i], self._times[i])
        return self._positions[i], self._times[i]

    @property
    def arrays(self) -> "tuple[array[int], array[int]]":
        """The positions, and the times at them. Not to be changed."""
        return self._positions, self._times

    def extend(self, positions: Sequence[int], times: Sequence[int]) -> None:
        """More of them (times modulo 2**64); of several at one position the last one stays."""
        before = self._positions[-1] if self._positions else -1
        if not all(map(lt, chain([before], positions), positions)):
            last = dict(zip(positions, times, strict=True))
            if before in last:
                self._times[-1] = last.pop(before) & _TIME_MASK
            positions, times = list(last), list(last.values())
        self._positions.extend(positions)
        try:
            self._times.extend(array("Q", times))
        except OverflowError:
            self._times.extend(time & _TIME_MASK for time in times)

    def at(self, position: int) -> int | None:
        """The last time known at or before *position*."""
        i = bisect_right(self._positions, position) - 1
        return self._times[i] if i >= 0 else None
