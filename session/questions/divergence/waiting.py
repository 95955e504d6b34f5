"""Loops that wait, in a flow: how often they went round, and where they were left.

How long a program waits is decided by a device, by another hart or by an interrupt, so it is no difference between two
runs: they are compared by what follows.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.divergence.flow import Flow, common
from rvtrace_gdb.session.questions.divergence.loop_code import is_waiting_round

_ROUND_AT_MOST = 1 << 10  # instructions
_BACKWARD = 16  # instructions between a branch and the line that it decides about
_KINDS_AT_MOST = 64  # of rounds of one loop: each is looked at once, however often it comes


class WaitingRounds(NamedTuple):
    """A loop that waits, of which the branch ran right in front of *begin*: there it goes round once more, and it is
    left at *end*; None: that is not in the trace. *rounds*: how many there are.
    """

    begin: int
    end: int | None
    rounds: int


class WaitingLoops:
    """The loops that wait in a *flow*. *instructions*: the flow of all instructions of the same history."""

    def __init__(self, flow: Flow, instructions: Flow, program: ContextImages) -> None:
        self._flow, self._instructions, self._program = flow, instructions, program
        self._known: dict[tuple[int, ...], bool] = {}

    def rounds_from(self, index: int) -> WaitingRounds | None:
        """Return the rounds of a waiting loop from an index on, in front of which the branch that decides ran; None: no
        such loop goes round there.
        """
        if not 0 < index < self._flow.next_break(index):
            return None
        place = self._instructions.index_from(self._flow.position(index))
        backward = 1 if self._flow.is_whole else _BACKWARD
        for at in range(place, max(place - backward, 0), -1):
            found = self._rounds(at)
            if found is not None:
                end = None if found.end is None else self._index(found.end)
                return WaitingRounds(index, end, found.rounds)
        return None

    def round_size(self, index: int) -> int:
        """Return after how many instructions the one in front of an index runs again, or more than are looked at."""
        at = self._instructions.index_from(self._flow.position(index))
        if not at:
            return _ROUND_AT_MOST
        [last, *ahead] = self._instructions.take(at - 1, _ROUND_AT_MOST)
        return ahead.index(last) if last in ahead else _ROUND_AT_MOST

    def _index(self, instruction: int) -> int:
        return self._flow.index_from(self._instructions.position(instruction))

    def _rounds(self, begin: int) -> WaitingRounds | None:
        """Return the same by the indices of instructions."""
        flow, last = self._instructions, self._instructions.next_break(begin)
        if begin >= last:
            return None
        branch, stays = flow.take(begin - 1, 2)
        image = self._program.image_of(flow.history.context_at(flow.position(begin - 1)))
        at, rounds = begin, 0
        for _ in range(_KINDS_AT_MOST):
            if at >= last:
                return WaitingRounds(begin, None, rounds) if rounds else None
            if flow.take(at, 1) != [stays]:
                return WaitingRounds(begin, at, rounds)
            ahead = flow.take(at, min(_ROUND_AT_MOST, last - at))
            if branch not in ahead:
                return WaitingRounds(begin, None, rounds) if rounds and at + len(ahead) >= last else None
            size = ahead.index(branch) + 1
            if not self._waits(image, ahead[:size]):
                return None
            times = 1 + common(flow, at, flow, at + size, last - at - size) // size
            at, rounds = at + times * size, rounds + times
        return None

    def _waits(self, image: Image, pcs: Sequence[int]) -> bool:
        key = tuple(pcs)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = is_waiting_round(image, pcs)
        return known
