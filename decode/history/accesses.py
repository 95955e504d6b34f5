"""Accesses of data trace: their positions in a history, and their wording in listings.

Data packets carry no instruction address: only their order and the code show which instruction each belongs to. Between
two synchronizations, the loads and stores of the code that ran, its atomics and its CSR instructions, are aligned with
the accesses of the trace; kind, size and operation must agree one by one, and so must their number. E-Trace 2.0 gives
no finer order than that. An encoder may report an access a little before or after the packets about its instruction, so
a synchronization may be crossed where only all stretches together agree. Where they do not agree, accesses are missing,
and only those get a position that can have no other.

Every listing shows accesses like this:

    load 4 bytes at 0x80005b40 <buffer+8> = 0x0000002a
    atomic add 8 bytes at 0x80005b48 <lock+0> = 0x0000000000000001, operand 0x0000000000000001
    csr rs 0x300 = 0x0000000a00001800, operand 0x0000000000000008
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.program.instructions import (
    CSR,
    MULTIPLE,
    AccessNote,
    MemoryAccess,
    Reach,
    UndecodableInstruction,
    reach,
)
from rvtrace_gdb.support.text import printable

_POSITIONS = 1 << 24, 256  # of a history that are examined, and how many more for each access
_SLOTS = 1 << 20, 16  # that are kept, and how many more for each access
_PIECE = 1 << 16  # positions
_MOST_WAYS = 16  # followed at a time, and instructions skipped at a time; code with more is ambiguous


class Slots(NamedTuple):
    """The accesses that the instructions of a history make, in order, restricted to the kinds in the trace.

    positions  of their instructions
    reaches    what each of them accesses
    gaps       the positions of the gaps
    begin, end the positions that were examined
    """

    positions: "array[int]"
    reaches: list[Reach]
    gaps: list[int]
    begin: int
    end: int

    @classmethod
    def from_history(cls, history: History, program: Program, accesses: Sequence[MemoryAccess]) -> "Slots":
        """Return the slots for the kinds of *accesses*, from the first synchronization on.

        The number of positions examined is limited in proportion to the number of accesses: a few bytes of trace can
        stand for any number of rounds of a loop.
        """
        begin = end = min((access.sync for access in accesses if access.sync >= 0), default=0)
        found = cls(array("Q"), [], [], begin, begin)
        kinds = frozenset(access.kind for access in accesses)
        most, stop = (least + each * len(accesses) for least, each in (_SLOTS, _POSITIONS))
        known: dict[Image, Mapping[int, tuple[Reach, ...]]] = {}
        for start, end, image in image_pieces(history, program, begin, begin + stop):
            if len(found.reaches) > most:
                return found._replace(end=start)
            if image not in known:
                known[image] = Computed(partial(reaches_at, image=image, kinds=kinds), 0)
            found._look_at(history, start, end, known[image])
        return found._replace(end=end)

    def _look_at(self, history: History, begin: int, end: int, known: Mapping[int, tuple[Reach, ...]]) -> None:
        for position, pc in enumerate(history.pcs(begin, end), begin):
            if pc == GAP:
                self.gaps.append(position)
            elif found := known[pc]:
                self.positions.extend([position] * len(found))
                self.reaches.extend(found)

    def slot_at(self, position: int) -> int:
        """Return the first slot at or after a position of the history."""
        return bisect_left(self.positions, position)

    def gap_after(self, position: int) -> int | None:
        """Return the first gap at or after a position, None without one."""
        i = bisect_left(self.gaps, position)
        return self.gaps[i] if i < len(self.gaps) else None


def image_pieces(history: History, program: Program, begin: int, stop: int) -> Iterator[tuple[int, int, Image]]:
    """Yield (begin, end, image) for short pieces of positions *begin* to *stop* - 1, each within one context."""
    stop = min(stop, len(history))
    while begin < stop:
        following = bisect_right(history.contexts, begin, key=itemgetter(0))
        end = history.contexts[following][0] if following < len(history.contexts) else stop
        end = min(end, stop, begin + _PIECE)
        context = history.context_at(begin)
        yield begin, end, program.image_of(context)
        begin = end


def reaches_at(pc: int, image: Image, kinds: frozenset[str]) -> tuple[Reach, ...]:
    """Return the accesses of these kinds that the instruction at *pc* makes, one entry for each."""
    try:
        size = image.instruction(pc).length
        found = reach(int.from_bytes(image.read(pc, min(size, 4)), "little"), image.xlen, zcm=image.zcm)
    except (CodeMissing, UndecodableInstruction):
        return ()
    return (found,) * max(found.times, 1) if found is not None and found.kind in kinds else ()


class SlotAlignment(NamedTuple):
    """The ways to assign accesses to slots.

    ends   the slots at which the next access may begin, one for each way
    steps  for each access: its slot, if there is one way; else by the slot after it: (slot before it, its slot)
    """

    ends: list[int]
    steps: "list[int | dict[int, list[tuple[int, int]]]]"

    def places(self, ends: Collection[int], positions: Sequence[int]) -> list[int | None]:
        """Return the position of each access if only these *ends* are right; None where the ways differ."""
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


def align(reaches: Sequence[Reach], accesses: Sequence[MemoryAccess], start: int, stop: int) -> SlotAlignment | None:
    """Return the ways to assign *accesses* to the slots from *start* to *stop* - 1, as many as there are slots for.

    Returns None if they do not fit.
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
        step = _assign_access(reaches, access, ends, stop)
        if step is None:
            return None
        if not step:
            return SlotAlignment(ends, steps) if not all(lacks_access(reaches, end, stop) for end in ends) else None
        steps.append(step)
        ends = list(step)
    return SlotAlignment(ends, steps)


def _assign_access(
    reaches: Sequence[Reach], access: MemoryAccess, ends: list[int], stop: int
) -> dict[int, list[tuple[int, int]]] | None:
    """Return all ways to assign one more access; None if there are too many."""
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


def _may_be_skipped(reach: Reach) -> bool:
    """Return whether the instruction may have made no access."""
    return reach.optional or not reach.times


def lacks_access(reaches: Sequence[Reach], slot: int, stop: int) -> bool:
    """Return whether a slot in *slot* to *stop* - 1 must have an access."""
    return not all(map(_may_be_skipped, reaches[slot:stop]))


def certain_slots(
    reaches: Sequence[Reach], accesses: Sequence[MemoryAccess], start: int, stop: int
) -> list[int | None] | None:
    """Return the slots, from *start* to *stop* - 1, of accesses of which some are missing; None for those that are not
    certain.

    A slot is certain if it is the same whether all accesses are assigned as early or as late as possible. The result is
    None if the accesses do not fit at all.
    """
    early = _greedy(reaches, accesses, range(start, stop))
    if early is None:
        return None
    late = _greedy(reaches, accesses[::-1], range(stop - 1, start - 1, -1)) or []
    return [slot if slot == other else None for slot, other in zip(early, reversed(late), strict=True)]


def _greedy(reaches: Sequence[Reach], accesses: Sequence[MemoryAccess], slots: range) -> list[int] | None:
    """Return, for each access, the next of *slots* it may belong to; None if there is none for one of them."""
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


SLACK = 4
"""How many accesses an encoder may report on the other side of a synchronizing packet than their instructions."""


def locate_accesses(history: History, program: Program, accesses: Sequence[MemoryAccess]) -> list[MemoryAccess]:
    """Return *accesses*, in the order of the trace, with their positions in the history, or with a note why one has
    none.

    A kind of access that never occurs in the trace is taken for one that the encoder does not trace.
    """
    if not accesses:
        return []
    slots = Slots.from_history(history, program, accesses)
    in_sync = [access for access in accesses if access.sync >= 0]
    found = chain.from_iterable(
        _located_run(slots, run) for run in _stretch_runs(_stretches(slots, in_sync, len(history)))
    )
    return [next(found) if access.sync >= 0 else _out_of_sync(access) for access in accesses]


class _SyncStretch(NamedTuple):
    """The part of a trace from one synchronization to the next one, a gap, or the end.

    accesses       of the trace
    start, stop    the slots from its own first one to the first one of the next stretch
    is_followed    another stretch follows without a gap, and nothing was lost in this one
    is_cut         accesses were lost at its end
    is_known       its slots were examined
    """

    accesses: list[MemoryAccess]
    start: int
    stop: int
    is_followed: bool = False
    is_cut: bool = False
    is_known: bool = True


def _stretches(slots: Slots, accesses: list[MemoryAccess], length: int) -> Iterator[_SyncStretch]:
    """Yield the stretches that have accesses, of a history of this length."""
    groups = [(sync, list(group)) for sync, group in groupby(accesses, attrgetter("sync"))]
    for number, (sync, group) in enumerate(groups):
        following = groups[number + 1][0] if number + 1 < len(groups) else -1
        gap = slots.gap_after(sync)
        end = length if gap is None else gap
        is_cut = AccessNote.LOST_AFTER in group[-1].notes
        is_followed = sync < following <= end and not is_cut
        end = following if is_followed else end
        yield _SyncStretch(
            group,
            slots.slot_at(sync),
            slots.slot_at(end),
            is_followed=is_followed,
            is_cut=is_cut,
            is_known=end <= slots.end,
        )


def _stretch_runs(stretches: Iterable[_SyncStretch]) -> Iterator[list[_SyncStretch]]:
    """Yield lists of stretches that follow each other without a gap or a loss; a stretch with unknown slots comes
    alone.
    """
    run: list[_SyncStretch] = []
    for stretch in stretches:
        if run and not stretch.is_known:
            yield run
            run = []
        run.append(stretch)
        if not stretch.is_followed or not stretch.is_known:
            yield run
            run = []
    if run:
        yield run


def _located_run(slots: Slots, run: list[_SyncStretch]) -> list[MemoryAccess]:
    """Return the accesses of a run, with their positions."""
    if not run[0].is_known:
        return [access.noted(AccessNote.TOO_FAR) for access in run[0].accesses]
    exact = [_exact(slots, stretch) for stretch in run]
    if None in exact and (whole := _complete_accesses(slots, run)) is not None:
        return whole
    first, last = run[0].start, run[-1].stop
    found: list[MemoryAccess] = []
    for stretch, placed in zip(run, exact, strict=True):
        found += placed or _incomplete(
            slots, stretch, max(stretch.start - SLACK, first), min(stretch.stop + SLACK, last)
        )
    return found


def _exact(slots: Slots, stretch: _SyncStretch) -> list[MemoryAccess] | None:
    """Return the accesses with their positions if they are exactly those of the stretch, otherwise None."""
    laid = align(slots.reaches, stretch.accesses, stretch.start, stretch.stop)
    if laid is None or (stretch.is_followed and len(laid.steps) < len(stretch.accesses)):
        return None
    ends = [end for end in laid.ends if stretch.is_cut or not lacks_access(slots.reaches, end, stretch.stop)]
    if not ends:
        return None
    placed = list(map(_with_position, stretch.accesses, laid.places(ends, slots.positions)))
    return placed + [access.noted(AccessNote.BEYOND) for access in stretch.accesses[len(placed) :]]


def _complete_accesses(slots: Slots, run: list[_SyncStretch]) -> list[MemoryAccess] | None:
    """Return the accesses of a run if together they are those of all its stretches, otherwise None.

    At most `SLACK` accesses may be too early or too late at each synchronization.
    """
    together = list(chain.from_iterable(stretch.accesses for stretch in run))
    found = _exact(slots, _SyncStretch(together, run[0].start, run[-1].stop, is_followed=False, is_cut=run[-1].is_cut))
    if found is None:
        return None
    number = 0
    for stretch in run:
        position = found[number].position
        if position is not None and abs(slots.slot_at(position) - stretch.start) > SLACK:
            return None
        number += len(stretch.accesses)
    return found


def _incomplete(slots: Slots, stretch: _SyncStretch, start: int, stop: int) -> list[MemoryAccess]:
    """Return the accesses of a stretch of which some are missing, between two slots."""
    found = certain_slots(slots.reaches, stretch.accesses, start, stop)
    if found is None:
        return [access.noted(AccessNote.DISAGREE) for access in stretch.accesses]
    positions = (None if slot is None else slots.positions[slot] for slot in found)
    return list(map(_with_position, stretch.accesses, positions))


def _with_position(access: MemoryAccess, position: int | None) -> MemoryAccess:
    return access.noted(AccessNote.AMBIGUOUS) if position is None else access._replace(position=position)


def _out_of_sync(access: MemoryAccess) -> MemoryAccess:
    return access if AccessNote.NO_REQUEST in access.notes else access.noted(AccessNote.NOT_IN_SYNC)


SymbolOf = Callable[[int], tuple[str, int] | None]
"""Returns the symbol and the offset of an address, None without a symbol."""


def _no_symbol(address: int) -> tuple[str, int] | None:
    return None


def access_text(access: MemoryAccess, xlen: int, symbol_of: SymbolOf = _no_symbol) -> str:
    """Return the text for an access, with remarks after " # ". Values that are not in the trace are left out."""
    text = " ".join(filter(None, (_what(access), _where(access, xlen, symbol_of))))
    if access.value is not None:
        text += f" = {_value_text(access.value, access.size)}"
    if access.operand is not None:
        text += f", operand {_value_text(access.operand, access.size)}"
    if access.failed:
        text += ", failed"
    return f"{text} # {note_text(access)}" if access.notes else text


def note_text(access: MemoryAccess) -> str:
    """Return the remarks on an access, "" for none."""
    return "; ".join(_NOTES[note] for note in access.notes)


_PLACE = "its place is not known"
_NOTES: Mapping[AccessNote, str] = {
    AccessNote.LOST_AFTER: "data packets after this one were lost",
    AccessNote.NO_REQUEST: (
        "the response to a load that was requested before the trace began, or whose packet was lost"
    ),
    AccessNote.NOT_YET: "no response in the trace",
    AccessNote.DIFFERS: "reported as the difference from an access that is not in the trace",
    AccessNote.NOT_IN_SYNC: f"{_PLACE}: it came when the trace was not in sync",
    AccessNote.BEYOND: f"{_PLACE}: its instruction is not in the history",
    AccessNote.AMBIGUOUS: f"{_PLACE}: more than one instruction may have made it",
    AccessNote.TOO_FAR: f"{_PLACE}: too much ran before it without a report",
    AccessNote.DISAGREE: f"{_PLACE}: loads and stores of the trace and of the program do not agree here",
}


def overlaps(access: MemoryAccess, begin: int, size: int) -> bool:
    """Return whether an access to memory, at a known address, shares a byte with the *size* bytes at *begin*."""
    if access.address is None or access.kind == CSR:
        return False
    return access.address < begin + size and begin < access.address + access.size


def _what(access: MemoryAccess) -> str:
    operation = "" if access.operation == MULTIPLE else access.operation
    size = "" if access.kind == CSR else f"{access.size} byte{'s' if access.size > 1 else ''}"
    return " ".join(filter(None, (access.kind, operation, size)))


def _where(access: MemoryAccess, xlen: int, symbol_of: SymbolOf) -> str:
    if access.address is None:
        return ""
    if access.kind == CSR:
        return f"0x{access.address:03x}"
    symbol = symbol_of(access.address)
    name = "" if symbol is None else f" <{printable(symbol[0])}+{symbol[1]}>"
    return f"at 0x{access.address:0{xlen // 4}x}{name}"


def _value_text(value: int, size: int) -> str:
    return f"0x{value:0{2 * size}x}"
