"""How deep the stack was: the answer of `trace stack`, as it crosses the pipe between gdb and the session."""

from __future__ import annotations

from typing import Any, NamedTuple

from rvtrace_gdb.rows.explain_rows import ExplainedPlace


class ChainFrame(NamedTuple):
    """A frame of the deepest chain. *place*: the instruction that was running, or the call that was made there.

    name     its function, "" if it is not known
    bytes    what it took of the stack, None: that is not known; *times* such frames, one inside the other
    trapped  it was interrupted by what is inside it
    """

    name: str
    place: ExplainedPlace
    bytes: int | None
    times: int
    trapped: bool


class LevelDepth(NamedTuple):
    """The lowest sp at a trap level. *used*: bytes from the end of the stack to there, None: that is not known."""

    level: int
    lowest: int
    number: int
    used: int | None


class FunctionDepth(NamedTuple):
    """The lowest sp in a function, at the instruction with a *number*.

    name   "" if it is not known; *start*: its address, -1: code without a symbol
    frame  bytes of its own frame, by its code that ran; *more*: and what the code does not say (alloca)
    """

    name: str
    start: int
    lowest: int
    number: int
    used: int | None
    frame: int
    more: bool


class StackArea(NamedTuple):
    """Memory that sp was in, from *start* to *end* - 1, None: a limit that is not known.

    name       of its object or section, "" in neither
    highest    above the highest sp that was seen there
    lowest     the lowest sp, at *place*
    used       bytes from there to *end*; *left*: from *start* to there, below 0 where the stack was too small
    levels, chain, functions   what is said of each above; the chain begins with the innermost
    """

    name: str
    start: int | None
    end: int | None
    highest: int
    lowest: int
    place: ExplainedPlace | None
    used: int | None
    left: int | None
    levels: list[LevelDepth]
    chain: list[ChainFrame]
    functions: list[FunctionDepth]


class StackDepth(NamedTuple):
    """How deep the stacks of a hart were, in the instructions with numbers *first* to *last*.

    areas    the one that was used first comes first
    lost     what is missing in the trace, "" if nothing is
    unknown  sentences: where sp is not known, and why
    """

    hart: int
    first: int
    last: int
    areas: list[StackArea]
    lost: str
    unknown: list[str]


def stack_depth_of(fields: list[Any]) -> StackDepth:
    """Return an answer that has crossed the pipe."""
    hart, first, last, areas, *rest = fields
    return StackDepth(hart, first, last, [_stack_area(it) for it in areas], *rest)


def _stack_area(fields: list[Any]) -> StackArea:
    name, start, end, highest, lowest, place, used, left, levels, chain, functions = fields
    return StackArea(
        name, start, end, highest, lowest, None if place is None else ExplainedPlace(*place), used, left,
        [LevelDepth(*it) for it in levels],
        [ChainFrame(name, ExplainedPlace(*at), *rest) for name, at, *rest in chain],
        [FunctionDepth(*it) for it in functions],
    )  # fmt: skip
