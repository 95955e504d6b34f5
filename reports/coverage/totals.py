"""How much is covered: shares of lines, functions, branches and the like."""

from collections.abc import Iterable
from typing import NamedTuple


class Share(NamedTuple):
    """How many are *covered*, how many *uncovered*, and of how many that is *unknown*."""

    covered: int = 0
    uncovered: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)

    @property
    def determined(self) -> int:
        """Those that are covered or uncovered."""
        return self.covered + self.uncovered

    def plus(self, other: "Share") -> "Share":
        """Return the sum of both."""
        return Share(*(one + another for one, another in zip(self, other, strict=True)))

    def percent(self) -> float | None:
        """Return the percentage that is covered, of those of which that is determined; None if there are none."""
        return 100 * self.covered / self.determined if self.determined else None

    def bounds(self) -> tuple[float, float]:
        """Return the least and the greatest percentage that is possible, whatever the unknown ones are; 100 of none."""
        if not self.total:
            return 100.0, 100.0
        return 100 * self.covered / self.total, 100 * (self.covered + self.unknown) / self.total


def share_of(counts: Iterable[int | None]) -> Share:
    """Return the share of what has these counts: None is unknown, 0 uncovered."""
    covered = uncovered = unknown = 0
    for count in counts:
        if count is None:
            unknown += 1
        elif count:
            covered += 1
        else:
            uncovered += 1
    return Share(covered, uncovered, unknown)


def total(shares: Iterable[Share]) -> Share:
    """Return the sum of some shares."""
    found = Share()
    for share in shares:
        found = found.plus(share)
    return found
