"""What is counted in a trace that has PC samples and calls, but no flow: the rows of a sampled report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class SampledPlace(NamedTuple):
    """A function, or a source line as FILE:LINE, and how many samples are there."""

    name: str
    samples: int


class SampledCall(NamedTuple):
    """How often the encoder reported a call from one function to another."""

    caller: str
    callee: str
    calls: int


class SampledReport(NamedTuple):
    """A report of some harts.

    samples    the PC samples; *placeless*: those of them whose address is not known
    losses     how often something is lost, or contradicts the program
    unended    the calls whose target is not known
    functions, lines, calls   the rows, those with most first; *more*: how many are not shown, by these names
    """

    harts: Sequence[int]
    samples: int
    placeless: int
    losses: int
    unended: int
    functions: Sequence[SampledPlace]
    lines: Sequence[SampledPlace]
    calls: Sequence[SampledCall]
    more: dict[str, int]


def sampled_of(answer: Sequence[Any]) -> SampledReport:
    """Return a report as it came through the pipe, with its types."""
    found = SampledReport(*answer)
    return found._replace(
        functions=[SampledPlace(*row) for row in found.functions],
        lines=[SampledPlace(*row) for row in found.lines],
        calls=[SampledCall(*row) for row in found.calls],
    )
