"""Instructions that gdb steps over one by one, whatever they are: it is spared the steps in between.

gdb steps through an inlined function, or backward through a line, one instruction at a time, and decides after each
whether to go on. gdb's Python knows the line table and the inlined functions, and so where that decision is the same
at each instruction: in a region. A step inside it then leads to where it ends, which gdb looks at as it would have.

gdb looks where control may leave the function for another one (calls, returns, traps), where gdb ever had a
breakpoint, and at the beginning of each range of a region. In a loop that comes back to that beginning, gdb decides
the same again and again, from the second time on; whether it does, gdb's Python says as well.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.support.errors import RvtraceError

_LOCAL = (IType.NONE, IType.NOT_TAKEN, IType.TAKEN, IType.OTHER_INFERABLE)
_PASSES = 4  # of the beginning of a range, until gdb need not look there again


class StepRegion(NamedTuple):
    """Where gdb goes on at each instruction. *repeats*: also at the beginning of a range where it did so before."""

    ranges: tuple[range, ...]
    repeats: bool

    def __contains__(self, pc: object) -> bool:
        return any(pc in part for part in self.ranges)

    def begins_at(self, pc: int) -> bool:
        return any(pc == part.start for part in self.ranges)


class StepBoundary:
    """The addresses where gdb looks: all but those of *region* where it goes on. *others*: breakpoints, and beginnings
    of ranges.
    """

    def __init__(self, region: StepRegion, others: frozenset[int], image: Image) -> None:
        self._region, self._others, self._image = region, others, image
        self._key = region, others, id(image)  # it is kept, and so is its id
        self._answers: dict[int, bool] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StepBoundary) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __contains__(self, pc: object) -> bool:
        if not isinstance(pc, int):
            return False
        answer = self._answers.get(pc)
        if answer is None:
            answer = self._answers[pc] = pc not in self._region or pc in self._others or leaves(self._image, pc)
        return answer

    def isdisjoint(self, pcs: Sequence[int]) -> bool:
        """Return whether none of some addresses is one of these."""
        return not any(pc in self for pc in set(pcs))


def leaves(image: Image, pc: int) -> bool:
    """Return whether an instruction may lead to another function, or may be no instruction."""
    try:
        return image.instruction(pc).itype not in _LOCAL
    except RvtraceError:
        return True


class _RegionLook(NamedTuple):
    """Where gdb has looked, and will take a step from if it goes on."""

    position: int
    region: StepRegion


class StepRegions:
    """The regions of the steps that gdb takes, by hart."""

    def __init__(self) -> None:
        self._looks: dict[int | None, _RegionLook] = {}
        self._repeated: dict[int | None, tuple[StepRegion, int, Counter[int]]] = {}

    def clear(self) -> None:
        """Note that gdb's command has ended."""
        self._looks.clear()
        self._repeated.clear()

    def expect(self, hart: int | None, position: int, region: StepRegion) -> None:
        """Note that gdb goes on in *region* if it takes a step from *position*."""
        self._looks[hart] = _RegionLook(position, region)

    def take(self, hart: int | None, position: int, direction: int) -> StepRegion | None:
        """Return the region for a step from a position, None: only one instruction is stepped."""
        look = self._looks.pop(hart, None)
        if look is None or look.position != position:
            self._repeated.pop(hart, None)
            return None
        repeated = self._repeated.get(hart)
        if repeated is None or repeated[:2] != (look.region, direction):
            self._repeated[hart] = look.region, direction, Counter()
        return look.region

    def beginnings(self, hart: int | None, pc: int) -> frozenset[int]:
        """Return the beginnings of ranges where gdb looks, now that it goes on from *pc*."""
        region, _, passes = self._repeated[hart]
        if region.begins_at(pc):
            passes[pc] += 1
        return frozenset(
            part.start for part in region.ranges if not region.repeats or passes[part.start] < _PASSES
        )
