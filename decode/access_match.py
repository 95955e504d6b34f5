"""Accesses laid beside the instructions that may have made them, in order."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.memory_access import Access, Reach, reach
from rvtrace_gdb.decode.streams import Program

_POSITIONS = 1 << 24, 256  # of a history that are looked at, and how many more for each access
_SLOTS = 1 << 20, 16  # that are kept, and how many more for each access
_PIECE = 1 << 16  # positions
_MOST_WAYS = 16  # followed at a time, and instructions skipped at a time; code where there are more tells nothing


class Slots(NamedTuple):
    """The accesses a history's instructions make, in order: those of some kinds only.

    positions  of their instructions
    reaches    what each of them accesses
    gaps       the positions of the gaps
    begin, end the positions that were looked at
    """

    positions: "array[int]"
    reaches: list[Reach]
    gaps: list[int]
    begin: int
    end: int

    @classmethod
    def of(cls, history: History, program: Program, accesses: Sequence[Access]) -> "Slots":
        """Those of the kinds of *accesses*, from the first synchronization on; not of all of a history that is
        out of proportion: a few bytes can stand for any number of rounds of a loop.
        """
        begin = end = min((access.sync for access in accesses if access.sync >= 0), default=0)
        found = cls(array("Q"), [], [], begin, begin)
        kinds = frozenset(access.kind for access in accesses)
        most, stop = (least + each * len(accesses) for least, each in (_SLOTS, _POSITIONS))
        known: dict[Image, _Reaches] = {}
        for start, end, image in _pieces(history, program, begin, begin + stop):
            if len(found.reaches) > most:
                return found._replace(end=start)
            found._look_at(history, start, end, known.setdefault(image, _Reaches(image, kinds)))
        return found._replace(end=end)

    def _look_at(self, history: History, begin: int, end: int, known: "_Reaches") -> None:
        for position, pc in enumerate(history.pcs(begin, end), begin):
            if pc == GAP:
                self.gaps.append(position)
            elif found := known[pc]:
                self.positions.extend([position] * len(found))
                self.reaches.extend(found)

    def at(self, position: int) -> int:
        """The first slot at or after a position of the history."""
        return bisect_left(self.positions, position)

    def gap_after(self, position: int) -> int | None:
        """The first gap at or after a position."""
        i = bisect_left(self.gaps, position)
        return self.gaps[i] if i < len(self.gaps) else None


def _pieces(history: History, program: Program, begin: int, stop: int) -> Iterator[tuple[int, int, Image]]:
    """(begin, end, image) of short pieces with the same context, of the positions *begin* to *stop* - 1."""
    stop = min(stop, len(history))
    while begin < stop:
        following = bisect_right(history.contexts, begin, key=itemgetter(0))
        end = history.contexts[following][0] if following < len(history.contexts) else stop
        end = min(end, stop, begin + _PIECE)
        context = history.context_at(begin)
        yield begin, end, program.image_of(context)
        begin = end


class _Reaches(dict[int, tuple[Reach, ...]]):
    """The accesses of the instruction at an address, one entry each."""

    def __init__(self, image: Image, kinds: frozenset[str]) -> None:
        super().__init__()
        self._image, self._kinds = image, kinds

    def __missing__(self, pc: int) -> tuple[Reach, ...]:
        image = self._image
        try:
            size = image.instruction(pc).length
            word = int.from_bytes(image.read(pc, min(size, 4)), "little")
            found = reach(word, image.xlen, zcm=image.zcm)
        except (CodeMissing, UndecodableInstruction):
            found = None
        self[pc] = (found,) * max(found.times, 1) if found is not None and found.kind in self._kinds else ()
        return self[pc]


class Laid(NamedTuple):
    """A way (or several) to lay accesses beside slots.

    ends   the slots the next access may begin at, one for each way
    steps  of each access: its slot, where there is one way; else by the slot after it: (slot before it, its slot)
    """

    ends: list[int]
    steps: "list[int | dict[int, list[tuple[int, int]]]]"

    def places(self, ends: Collection[int], positions: Sequence[int]) -> list[int | None]:
        """The position of each access if only these *ends* are right; None where the ways differ."""
        found: list[int | None] = []
        alive = set(ends)
        for step in reversed(self.steps):
            if isinstance(step, int):
                found.append(positions[step])
                alive = {step}
                continue
            ways = [way for end in alive for way in step.get(end, ())]
            places = {positions[slot] for _, slot in ways}
            found.append(places.pop() if len(places) == 1 else None)
            alive = {before for before, _ in ways}
        return found[::-1]


def lay(reaches: Sequence[Reach], accesses: Sequence[Access], start: int, stop: int) -> Laid | None:
    """*accesses* beside the slots from *start* on and before *stop*, or as many of them as there are slots for.

    None where they do not fit.
    """
    ends = [start]
    steps: list[int | dict[int, list[tuple[int, int]]]] = []
    for access in accesses:
        if len(ends) == 1 and ends[0] < stop and not _may_be_skipped(reaches[ends[0]]):
            if not reaches[ends[0]].is_of(access):
                return None
            steps.append(ends[0])
            ends[0] += 1
            continue
        step = _step(reaches, access, ends, stop)
        if step is None:
            return None
        if not step:
            return Laid(ends, steps) if not all(are_missing(reaches, end, stop) for end in ends) else None
        steps.append(step)
        ends = list(step)
    return Laid(ends, steps)


def _step(
    reaches: Sequence[Reach], access: Access, ends: list[int], stop: int
) -> dict[int, list[tuple[int, int]]] | None:
    """All ways for one more access; None when there are too many."""
    step: dict[int, list[tuple[int, int]]] = {}
    for before in ends:
        for slot in range(before, stop):
            if slot - before > _MOST_WAYS:
                return None
            if reaches[slot].is_of(access):
                step.setdefault(slot + 1 if reaches[slot].times else slot, []).append((before, slot))
            if not _may_be_skipped(reaches[slot]):
                break
    return step if len(step) <= _MOST_WAYS else None


def _may_be_skipped(found: Reach) -> bool:
    """Whether the instruction may have made no access."""
    return found.optional or not found.times


def are_missing(reaches: Sequence[Reach], slot: int, stop: int) -> bool:
    """Whether a slot from *slot* on, before *stop*, must have an access."""
    return not all(map(_may_be_skipped, reaches[slot:stop]))


def certain(reaches: Sequence[Reach], accesses: Sequence[Access], start: int, stop: int) -> list[int | None] | None:
    """The slots, from *start* on and before *stop*, of accesses of which some are missing; None where that is open.

    Certain is what is the same whether all are laid as early or as late as they can be. None in all: they do not fit.
    """
    early = _greedy(reaches, accesses, range(start, stop))
    if early is None:
        return None
    late = _greedy(reaches, accesses[::-1], range(stop - 1, start - 1, -1)) or []
    return [slot if slot == other else None for slot, other in zip(early, reversed(late), strict=True)]


def _greedy(reaches: Sequence[Reach], accesses: Sequence[Access], slots: range) -> list[int] | None:
    """Each access at the next of *slots* that it may be of."""
    found: list[int] = []
    at = 0
    for access in accesses:
        while at < len(slots) and not reaches[slots[at]].is_of(access):
            at += 1
        if at == len(slots):
            return None
        found.append(slots[at])
        at += reaches[slots[at]].times > 0
    return found
