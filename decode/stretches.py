"""Whether a stretch of a trace, from one synchronization to the next, has fewer messages than its encoder sends.

What an encoder counts is not told in every detail: a few fewer are believed until the trace has shown how this encoder
counts. Nor is anything said of an encoder whose trace shows more such stretches than others: it does not do what its
register says.
"""

_SHOWN = 4  # stretches of exactly the least number, before a little fewer is too few


class Judge:
    """Of one encoder, which sends *least* messages or more, or up to *unsure* fewer."""

    def __init__(self, least: int, unsure: int = 1) -> None:
        self.least = least
        self._unsure = unsure
        self._whole = self._exact = self._fewer = self._short = 0  # stretches so far, by what they showed

    def add(self, whole: int, exact: int) -> None:
        """So many stretches are whole, and of these so many have exactly the least number."""
        self._whole += whole
        self._exact += exact

    def is_short(self, messages: int) -> bool:
        """Whether a stretch of so many messages lacks some, as far as this encoder has shown what it does."""
        if messages >= self.least:
            self.add(1, messages == self.least)
            return False
        if messages >= self.least - self._unsure:
            short = self._exact >= _SHOWN and not self._fewer
            self._fewer += not short
            return short
        self._short += 1
        return self._short <= self._whole
