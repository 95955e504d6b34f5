"""Two flows, one beside the other: where they part, and where they come together again."""

from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.session.questions.divergence.alignment import (
    FlowSide,
    Meeting,
    MeetingEffort,
    is_meeting,
    meeting,
    resumption,
)
from rvtrace_gdb.session.questions.divergence.flow import common
from rvtrace_gdb.session.questions.divergence.waiting import WaitingLoops, WaitingRounds
from rvtrace_gdb.support.errors import Progress, silent

DIFFERS, LOST, ENDS, WAITS = "differs", "lost", "ends", "waits"
"""What a stretch is: both runs did different things; trace is lost, so it is not known; one trace has ended; one of
them waits to its end.
"""


class FlowStretch(NamedTuple):
    """The indices of each flow from its *begin* to its *end* - 1, which are not the same; before them both are."""

    kind: str
    begin: int
    end: int
    other_begin: int
    other_end: int


@dataclass
class FlowComparison:
    """What came out of a comparison.

    begin, other_begin  where both flows begin to be compared, None: nothing of one is in the other
    same      how many symbols are the same
    stretches in order
    rough     whether they differ so much that the last stretch is all that was left of them
    waits     how many waiting loops went round a different number of times, by the index at which the first is left
    """

    begin: int | None = None
    other_begin: int | None = None
    same: int = 0
    stretches: list[FlowStretch] = field(default_factory=list)
    waits: int = 0
    rough: bool = False

    @property
    def divergence(self) -> FlowStretch | None:
        """Where the runs part first, None if they do not, as far as both are known."""
        return next((it for it in self.stretches if it.kind in (DIFFERS, WAITS)), None)


class ComparedSide(NamedTuple):
    """A side of a comparison. *loops*: its waiting loops; *is_cut*: what ran before its trace was overwritten."""

    side: FlowSide
    loops: WaitingLoops
    is_cut: bool


def compare(one: ComparedSide, other: ComparedSide, progress: Progress = silent) -> FlowComparison:
    """Return where two runs part, and where they come together. Raises what *progress* raises."""
    return _Comparer(one, other, progress).result()


class _Comparer:
    """The two sides, and how far they have been compared: up to the indices *i* and *j*."""

    def __init__(self, one: ComparedSide, other: ComparedSide, progress: Progress) -> None:
        self._one, self._other, self._progress = one, other, progress
        self._a, self._b = one.side.flow, other.side.flow
        self._i = self._j = 0
        self._found = FlowComparison()
        self._effort = MeetingEffort()

    def result(self) -> FlowComparison:
        found = self._found
        start = self._start()
        if start is None:
            return found
        self._i, self._j = found.begin, found.other_begin = start
        while self._go_on():
            self._progress("comparing (instructions)", self._i, len(self._a))
        return found

    def _start(self) -> Meeting | None:
        if not len(self._a) or not len(self._b):
            return None
        if not (self._one.is_cut or self._other.is_cut) and self._a.take(0, 1) == self._b.take(0, 1):
            return Meeting(0, 0)
        if not (self._one.is_cut or self._other.is_cut) and is_meeting(self._a, 0, self._b, 0):
            return Meeting(0, 0)
        return self._resumption(self._one.side, 0, self._other.side, 0)

    def _resumption(self, one: FlowSide, i: int, other: FlowSide, j: int) -> Meeting | None:
        """Return where the flows come together if either may have begun in the middle of the other."""
        found = resumption(one, i, other, j, self._progress)
        swapped = resumption(other, j, one, i, self._progress)
        turned = None if swapped is None else Meeting(swapped.other, swapped.one)
        known = [it for it in (found, turned) if it is not None]
        return max(known, key=self._length, default=None)

    def _length(self, at: Meeting) -> int:
        most = min(self._a.next_break(at.one) - at.one, self._b.next_break(at.other) - at.other)
        return common(self._a, at.one, self._b, at.other, most)

    def _go_on(self) -> bool:
        """Compare up to the next place where the flows part, and from there to where they come together. Return whether
        there is more.
        """
        same = self._length(Meeting(self._i, self._j))
        self._i, self._j = self._i + same, self._j + same
        self._found.same += same
        if self._i == len(self._a) or self._j == len(self._b):
            return self._end()
        if (self._a.is_break(self._i) and same) or (self._b.is_break(self._j) and same):
            return self._behind_loss(self._i, self._j)
        return self._wait() or self._part()

    def _end(self) -> bool:
        if self._i < len(self._a) or self._j < len(self._b):
            self._add_stretch(ENDS, len(self._a), len(self._b))
        return False

    def _wait(self) -> bool:
        """Go over the rounds of a waiting loop that one of the runs has more of; return whether it is one."""
        mine, rounds = self._rounds()
        if rounds is None or rounds.end is None:
            return False
        if mine and self._a.take(rounds.end, 1) == self._b.take(self._j, 1):
            self._i = rounds.end
        elif not mine and self._b.take(rounds.end, 1) == self._a.take(self._i, 1):
            self._j = rounds.end
        else:
            return False
        self._found.waits += 1
        return True

    def _rounds(self) -> tuple[bool, WaitingRounds | None]:
        """Return the rounds of a waiting loop that one of the runs stays in, and whether it is the first one: that
        which comes back sooner. The way out of a loop may lead back to it, too.
        """
        sizes = self._one.loops.round_size(self._i), self._other.loops.round_size(self._j)
        if sizes[0] <= sizes[1]:
            return True, self._one.loops.rounds_from(self._i)
        return False, self._other.loops.rounds_from(self._j)

    def _part(self) -> bool:
        _, rounds = self._rounds()
        if rounds is not None and rounds.end is None:
            last, end = self._a.next_break(self._i), self._b.next_break(self._j)
            if last == len(self._a) and end == len(self._b):
                self._add_stretch(WAITS, last, end)
                return False
        found = meeting(self._one.side, self._i, self._other.side, self._j, self._effort, self._progress)
        if found is not None:
            self._add_stretch(DIFFERS, *found)
            return True
        last, end = self._a.next_break(self._i), self._b.next_break(self._j)
        if self._effort.is_spent or (last == len(self._a) and end == len(self._b)):
            self._found.rough = self._effort.is_spent
            self._add_stretch(DIFFERS, len(self._a), len(self._b))
            return False
        return self._behind_loss(self._i, self._j, parted=True)

    def _behind_loss(self, i: int, j: int, *, parted: bool = False) -> bool:
        """Go on behind what is lost of one run or of both. *parted*: they differ in front of it."""
        a, b = self._a.next_break(i), self._b.next_break(j)
        places = [(a, j), (i, b), (a, b)] if parted else [(i, j), (a, j), (i, b), (a, b)]
        best = None
        for at in places:
            met = self._met(*at)
            if met is not None and (best is None or self._length(met) > self._length(best)):
                best = met
            if best is not None and not parted:
                break
        last, end = best if best is not None else (len(self._a), len(self._b))
        self._add_stretch(DIFFERS if parted else LOST, last, end)
        return best is not None

    def _met(self, i: int, j: int) -> Meeting | None:
        if i >= len(self._a) or j >= len(self._b):
            return None
        return self._resumption(self._one.side, i, self._other.side, j)

    def _add_stretch(self, kind: str, end: int, other_end: int) -> None:
        self._found.stretches.append(FlowStretch(kind, self._i, end, self._j, other_end))
        self._i, self._j = end, other_end

