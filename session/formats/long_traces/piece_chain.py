"""The pieces of a trace, put together in their order: what is known at the beginning of each of them.

A scan that began with a guess is taken only if the guess is what is known at the end of the piece before. So the
histories, and all that is made of them, are those of a trace that is decoded as a whole.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.calls.stacks.frame import Frames
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.stepping.relative_places import carried_over
from rvtrace_gdb.session.formats.long_traces.trace_index import SourceFacts
from rvtrace_gdb.session.formats.long_traces.trace_pieces import PiecePlace, PieceScan

_NOTHING = Accounting(0, 0, 0, 0)


class PieceStart(NamedTuple):
    """What is known where a piece begins: the place, None at the beginning of the trace; by source, the first position
    and the call stacks.
    """

    place: PiecePlace | None
    firsts: Mapping[int, int]
    stacks: Mapping[int, KeptStacks]


class PieceChain:
    """Pieces that were scanned, in their order. *start*: what is known where the next one begins; None after the last
    one.
    """

    def __init__(self) -> None:
        self.start: PieceStart | None = PieceStart(None, {}, {})
        self.accounting = _NOTHING
        self._facts: dict[int, SourceFacts] = {}

    def add(self, scan: PieceScan) -> bool:
        """Add the next piece; return False if its scan began with a guess that is wrong."""
        start = self.start
        assert start is not None
        state = scan.state
        if scan.begin is not None:
            state = _state_after(start.place, scan)
            if state is None:
                return False
        self.accounting = _sum(self.accounting, scan.accounting)
        firsts, stacks, frames = dict(start.firsts), dict(start.stacks), Frames()
        for source, found in scan.sources.items():
            first = firsts.get(source, 0)
            self._add_facts(source, scan, first)
            firsts[source] = first + found.length
            calls = stacks.get(source, KeptStacks()).stacks(frames)
            calls.do(found.operations)
            stacks[source] = KeptStacks.of_stacks(calls.stack, calls.level, calls.waiting)
        if scan.end is None or state is None:
            self.start = None
        else:
            self.start = PieceStart(scan.end._replace(checkpoint=state), firsts, stacks)
        return True

    def _add_facts(self, source: int, scan: PieceScan, first: int) -> None:
        found, before = scan.sources[source], self._facts.get(source)
        before = before or SourceFacts(0, 0, _NOTHING, (), Counter())
        moved = tuple(event._replace(position=event.position + first - found.first) for event in found.problems)
        self._facts[source] = SourceFacts(
            before.length + found.length,
            before.gaps + found.gaps,
            _sum(before.accounting, found.accounting),
            before.problems + moved,
            Counter(before.counts) + found.counts,
        )

    def source_facts(self) -> dict[int, SourceFacts]:
        """Return what is known of the histories, by source."""
        return dict(sorted(self._facts.items()))


def _state_after(place: PiecePlace | None, scan: PieceScan) -> dict[str, object] | None:
    """Return the state of the decoder after a piece, None if the guess with which its scan began may be wrong."""
    guess, end = scan.begin, scan.state
    if guess is None or place is None or guess.at != place.at or guess.befores != place.befores:
        return None
    if end is None:
        return guess.checkpoint if guess.checkpoint == place.checkpoint else None
    return carried_over(place.checkpoint, guess.checkpoint, end)


def _sum(one: Accounting, other: Accounting) -> Accounting:
    return Accounting(*map(sum, zip(one, other, strict=True)))
