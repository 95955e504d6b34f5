"""TACIT's branch predictor, which encoder and decoder have alike.

Source: ucb-bar/tacit (91f4bcb), DSCCountingPredictor.scala: saturating counters of 2 bits, chosen by the address.
"""

_WEAK_NOT_TAKEN, _WEAK_TAKEN, _STRONG_TAKEN = 1, 2, 3


class CountingPredictor:
    """A predictor of so many *entries*. `version` rises with each change of a counter."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._counters: dict[int, int] = {}
        self.version = 0

    def predicts(self, pc: int) -> bool:
        """Return whether the branch at *pc* is expected to be taken."""
        return self._counters.get((pc >> 1) % self._entries, _WEAK_NOT_TAKEN) >= _WEAK_TAKEN

    def learn_outcome(self, pc: int, *, taken: bool) -> None:
        """Note the outcome of the branch at *pc*."""
        index = (pc >> 1) % self._entries
        before = self._counters.get(index, _WEAK_NOT_TAKEN)
        after = min(before + 1, _STRONG_TAKEN) if taken else max(before - 1, 0)
        if after != before:
            self._counters[index] = after
            self.version += 1
