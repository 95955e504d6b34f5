"""The answer to the question which code tells bad runs from good ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class BlamedCode(NamedTuple):
    """Lines, or one way of a branch, that ran in the same runs.

    score       from 0 to 1 (Ochiai): 1: it ran in all bad runs and in no good one
    file        the source file; *line* to *end_line* of it, and the *function*, "" if not known
    way         of a branch: "taken" or "not taken", else ""; *target*: the line where it leads, 0 if not known
    bad, good   in how many bad and good runs it ran, of those of which that is known (*bad_known*, *good_known*)
    text        the source text of the first line, "" if the file cannot be read
    """

    score: float
    file: str
    line: int
    end_line: int
    function: str
    way: str
    target: int
    bad: int
    bad_known: int
    good: int
    good_known: int
    text: str = ""

    @property
    def only_bad(self) -> bool:
        """Whether bad runs alone ran it, as far as known."""
        return bool(self.bad) and not self.good

    @property
    def only_good(self) -> bool:
        """Whether good runs alone ran it, as far as known."""
        return bool(self.good) and not self.bad


class BlameAnswer(NamedTuple):
    """The code that tells *bad* runs from *good* ones, which are numbers of runs.

    suspects   what bad runs ran rather than good ones, the highest score first
    missing    what only good runs ran
    unknown    of how many lines it is not known for some run whether it ran there: trace is lost
    """

    good: int
    bad: int
    suspects: Sequence[BlamedCode]
    missing: Sequence[BlamedCode]
    unknown: int
