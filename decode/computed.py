"""A dictionary of what a function returns: each value is computed when it is asked for first."""

from collections.abc import Callable
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")

_LIMIT = 1 << 16


class Computed(dict[_K, _V]):
    """The results of *compute* by argument. Where there are *limit* of them, all are dropped; 0: never."""

    def __init__(self, compute: Callable[[_K], _V], limit: int = _LIMIT) -> None:
        super().__init__()
        self._compute, self._limit = compute, limit

    def __missing__(self, key: _K) -> _V:
        if len(self) == self._limit:
            self.clear()
        found = self[key] = self._compute(key)
        return found
