"""Which instructions are believed to have run where a group says, of groups that are in doubt.

In doubt is what stands beside damage: the first group after a loss or after groups that are missing, a group that
breaks a rule, the one after it, and one without an end among others that have one. An address has three witnesses: the
group after it, which goes on there or cannot; the program, which has that instruction there or another one; and where
the program differs from the trace anyhow, nobody but the trace.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.errors import CodeMissing
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem.group import Instr
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.problems import Problem
from rvtrace_gdb.decode.tandem.steps import NOWHERE, Anywhere, Steps
from rvtrace_gdb.decode.tandem.trace import Flaw

TRACE = "the trace"
"""What code is from that a program does not have."""
AHEAD = 2
"""How many groups after one are looked at."""

_HARMLESS = (Problem.DUPLICATE_RESET, Problem.DUPLICATE_INITIALIZATION, Problem.ORPHAN_END)


class Before(NamedTuple):
    """What those behind it need to know of a group: whether it agrees with the program, if known; breaks a rule."""

    agrees: bool | None = None
    is_flawed: bool = False


class Beliefs:
    """The groups of an index from *first* on. *before*: of the group before."""

    def __init__(self, index: Index, first: int, flaws: Iterable[Flaw], before: Before) -> None:
        self._index, self._trace, self._first, self._before = index, index.trace, first, before
        self._steps = Steps(index.trace.parameters.xlen)
        flawed = {flaw.group for flaw in flaws if flaw.problem not in _HARMLESS}
        flawed |= {first - 1} if before.is_flawed else set()
        self._flawed = flawed
        self._loose = {flaw.group for flaw in flaws if flaw.problem is Problem.LOOSE_EXECUTION}
        self._contradicted = {mark.group for mark in index.breaks if not mark.loss}
        self._broken = {mark.group for mark in index.breaks}
        self._lost = self._broken - self._contradicted
        self.doubted = {*self._broken, *flawed, *(group + 1 for group in flawed), *self._without_end()}
        """Groups in doubt; there need not be one with such a number yet."""
        self.waiting = self.doubted | {trap.group for trap in index.traps}
        """Those that cannot be told of before what is behind them is known."""

    def _without_end(self) -> Iterator[int]:
        """Groups whose end is implied, right after one that has its end."""
        trace, first = self._trace, self._first
        implied = {shape.number for shape in trace.automaton.shapes if not shape.loose and not shape.end}
        shapes = trace.shapes
        if not implied.isdisjoint(shapes[first:]):
            yield from (
                group
                for group in range(max(first, 1), len(shapes))
                if shapes[group] in implied and shapes[group - 1] not in implied
            )

    def believes(self, group: int, image: Image) -> bool:
        """Whether the instruction of a group in doubt ran where the group says."""
        if group in self._loose:
            return False
        agrees = self._agrees(group, image)
        if agrees:
            return True
        if group in self._contradicted and group and self._agrees(group, image, self._index.pcs[group - 1]):
            return False  # it is the one that was due: where it says it was is what is damaged
        if agrees is None:  # no code of the program is there
            if group in self._contradicted:
                return self._goes_on(group, image)
            return group not in self._broken or group + 1 not in self._contradicted
        before = self._agrees(group - 1, image) if group > self._first else self._before.agrees
        return not (before or any(self._ahead(group, AHEAD, image)))

    def _goes_on(self, group: int, image: Image) -> bool:
        """Whether what follows says the same of where a group went, and not that it was in the program's code."""
        following = group + 1
        if following >= len(self._index.pcs) or following in self._lost:
            return True
        instr = self._instr(following)
        leads_anywhere = instr is not None and isinstance(self._steps[instr.word], Anywhere)
        return following not in self._contradicted and not leads_anywhere and not any(self._ahead(group, 1, image))

    def _ahead(self, group: int, most: int, image: Image) -> Iterator[bool | None]:
        """Whether the groups after one agree with the program, up to a loss."""
        for following in range(group + 1, group + 1 + most):
            if following in self._lost:
                return
            yield self._agrees(following, image)

    def handler(self, group: int) -> bool:
        """Whether a trap is believed to have gone on where its group says: what follows does not contradict it."""
        return group + 1 not in self._contradicted

    def origin(self, group: int, image: Image) -> bool:
        """Whether a trap is believed to have been where its group says."""
        return group not in self._contradicted or self._agrees(group, image) is True

    def agrees(self, group: int, image: Image) -> bool | None:
        """Whether the program has the instruction of a group where that says; None: there is none, or no such code."""
        return self._agrees(group, image)

    def _agrees(self, group: int, image: Image, at: int = NOWHERE) -> bool | None:
        """As `agrees`; *at*: at this address instead."""
        if not 0 <= group < len(self._index.pcs):
            return None
        instr = self._instr(group)
        origin = self._index.origin(group) if at == NOWHERE else at
        if instr is None or origin == NOWHERE or not image.knows(origin) or image.origin(origin) == TRACE:
            return None
        try:
            return image.read(origin, instr.length) == instr.word.to_bytes(instr.length, "little")
        except CodeMissing:
            return None

    def _instr(self, group: int) -> Instr | None:
        return next((element for element in self._trace.elements(group) if isinstance(element, Instr)), None)

    def last(self, stop: int, image: Image) -> Before:
        """Of the group before *stop*: what the next ones are given."""
        if stop <= self._first:
            return self._before
        return Before(self._agrees(stop - 1, image), stop - 1 in self._flawed)
