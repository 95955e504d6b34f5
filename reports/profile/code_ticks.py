"""The ticks that passed in pieces of code, such as lines or blocks, and how many of these are an estimate."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from rvtrace_gdb.reports.profile.model import CodePlace, Profile
from rvtrace_gdb.reports.profile.ticks import FRACTION, most_ticks, whole_ticks

_ROUNDED = 1 << FRACTION - 20
"""The share of each instruction is rounded to 2**-40 ticks: what a million of them add up to at most."""


class CodeTicks(NamedTuple):
    """*ticks* that passed, of which so many are an *estimate*."""

    ticks: int
    estimate: int


def code_ticks(profile: Profile, pieces: Mapping[CodePlace, int]) -> dict[int, CodeTicks]:
    """Return the ticks of pieces of code, by their numbers. *pieces*: the number of each instruction that ran."""
    shares, known = Counter[int](), Counter[int]()
    for place, ticks in profile.ticks.items():
        shares[pieces[place]] += ticks
    places = sorted(pieces)
    for (first, last), ticks in profile.spans.items():
        within = places[bisect_left(places, first) : bisect_right(places, (first[0], last))]
        numbers = {pieces[place] for place in within}
        if len(numbers) == 1:
            known[numbers.pop()] += ticks
    return {number: _ticks(share, known[number]) for number, share in shares.items()}


def _ticks(share: int, certain: int) -> CodeTicks:
    rest = share - (certain << FRACTION)
    if rest <= _ROUNDED:
        return CodeTicks(certain, 0)
    return CodeTicks(whole_ticks(share), most_ticks(rest))
