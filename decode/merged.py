"""Several histories as one: which hart's piece comes when, by the times the histories know.

A history knows its time at some of its positions. What lies between two of them is taken to run at the earlier one, so
pieces are as fine as the trace's timestamps are. Times of different harts can be compared when their encoders share a
clock, as the standard suggests (N-Trace 1.0, "Timestamp Reporting").
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import NamedTuple

from rvtrace_gdb.decode.history import History


class Run(NamedTuple):
    """The positions *begin* to *end* - 1 of a hart's history."""

    hart: int
    begin: int
    end: int


def runs(histories: Mapping[int, History]) -> Iterator[Run]:
    """All positions of all *histories* in the order of their times, in pieces as long as possible.

    Each history keeps its own order. Of equal times the hart with the lower number comes first; harts without times
    come last, one after the other.
    """
    timed = [_pieces(hart, histories[hart]) for hart in sorted(histories) if histories[hart].times]
    current: Run | None = None
    for _, piece in merge(*timed):
        if current is not None and current.hart == piece.hart:
            current = current._replace(end=piece.end)
        else:
            if current is not None:
                yield current
            current = piece
    if current is not None:
        yield current
    yield from (Run(hart, 0, len(histories[hart])) for hart in untimed(histories) if len(histories[hart]))


def untimed(histories: Mapping[int, History]) -> list[int]:
    """The harts whose histories know no times."""
    return [hart for hart in sorted(histories) if not histories[hart].times]


def _pieces(hart: int, history: History) -> Iterator[tuple[int, Run]]:
    """(time, positions), times never falling: what a history says to be earlier than what came before is not.

    What ran before the first time belongs to the first piece.
    """
    begin, time = 0, history.times[0][1]
    for position, now in history.times:
        if now > time:
            if position > begin:
                yield time, Run(hart, begin, position)
                begin = position
            time = now
    if len(history) > begin:
        yield time, Run(hart, begin, len(history))
