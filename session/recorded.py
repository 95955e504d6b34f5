"""What gdb's `record btrace` was given of a hart's history, and what it is to be given next.

gdb keeps what it has and asks for more ("delta"); it must then get exactly what follows, or be told that there is no
such thing, and asks for everything anew. Source: gdb/btrace.c of gdb 13.1, btrace_fetch and btrace_stitch_bts.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.session.blocks import Block, blocks, gap, up_to

_SAMPLES = 64  # positions compared to see whether a history goes on where an earlier one ended


class Traced(NamedTuple):
    """The history of a hart. *grows*: its beginning stays as it is when more is read out."""

    history: History
    program: ContextImages
    grows: bool


class _Given(NamedTuple):
    """What gdb has: a history, where the hart was, and whether there is a gap in between that was not traced.

    *pc* None: gdb was not given anything yet.
    """

    it: Traced | None
    pc: int | None
    unknown: bool = False


class Recording:
    """Of one hart, whose history is *it*; *limit*: that many positions of its end are given."""

    def __init__(self, limit: int, it: Traced | None) -> None:
        self._limit = limit
        self._given = _Given(it, None)

    def everything(self, it: Traced | None, pc: int) -> list[Block]:
        """The newest instructions up to the one at *pc*, oldest block first.

        *it* None: nothing could be read out; what is known from before then has a gap behind it.
        """
        known = it or self._given.it
        self._given = _Given(known, pc, it is None)
        if known is None:
            return [(pc, pc)]
        length = len(known.history)
        made = blocks(known.history, known.program, max(0, length - self._limit), length)
        return [*made, gap(pc), (pc, pc)] if it is None else up_to(pc, made, known.history, known.program)

    def nothing_new(self, pc: int) -> list[Block] | None:
        """What gdb is given when nothing ran since. None: it has to ask for everything, because *pc* was changed."""
        return [(0, pc)] if pc == self._given.pc else None

    def more(self, it: Traced | None, pc: int) -> list[Block] | None:
        """What ran since gdb was given something, as far as *it* has it. None: it has to ask for everything.

        What ran and was not read out is a gap, behind the instruction that was to run next.
        """
        given = self._given
        if given.pc is None:
            return None
        if it is None or (given.it is not None and it.history is given.it.history):
            self._given = given._replace(pc=pc, unknown=True)
            return [(0, given.pc), gap(pc), (pc, pc)]
        if given.unknown or given.it is None or not _goes_on(given.it.history, it):
            return None
        first, length = len(given.it.history), len(it.history)
        if length == first:
            self._given = given._replace(it=it)
            return self.nothing_new(pc)
        if length - first > self._limit or it.history.pc(first) != given.pc:
            return None
        made = up_to(pc, blocks(it.history, it.program, first, length), it.history, it.program)
        self._given = _Given(it, pc)
        return [(0, made[0][1]), *made[1:]]


def _goes_on(before: History, after: Traced) -> bool:
    """Whether *after* has all that *before* has at the same places: by samples, where the trace's bytes only grew."""
    length, history = len(before), after.history
    if not after.grows or not length or len(history) < length or before.pc(length - 1) == GAP:
        return False
    places = {*range(0, length, max(1, length // _SAMPLES)), *range(max(0, length - _SAMPLES), length)}
    return all(before.pc(place) == history.pc(place) for place in places)
