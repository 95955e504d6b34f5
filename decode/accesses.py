"""Accesses to their places in a history.

Data packets carry no address of an instruction: only their order and the code tell whose they are. Between two
synchronizations the loads and stores of the code that ran, its atomics and its CSR instructions, are laid beside the
accesses of the trace; kind, size and operation must agree one by one, and so must the number of them. E-Trace 2.0 gives
no finer order than that. An encoder may tell an access a little before or after the packets about its instruction, so
synchronizations are passed over where only all stretches together agree. Where they do not, accesses are missing, and
only those get a place that can have no other.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.decode.access_match import Slots, are_missing, certain, lay
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.memory_access import Access, AccessNote
from rvtrace_gdb.decode.streams import Program

SLACK = 4
"""How many accesses may be told on the other side of a synchronizing packet than their instructions."""


def attach(history: History, program: Program, accesses: Sequence[Access]) -> list[Access]:
    """*accesses*, in the order of the trace, with their positions in the history, or a note why there is none.

    Kinds of access that are not in the trace at all are taken for kinds the encoder does not trace.
    """
    if not accesses:
        return []
    slots = Slots.of(history, program, accesses)
    in_sync = [access for access in accesses if access.sync >= 0]
    found = chain.from_iterable(_run(slots, run) for run in _runs(_stretches(slots, in_sync, len(history))))
    return [next(found) if access.sync >= 0 else _out_of_sync(access) for access in accesses]


class _Stretch(NamedTuple):
    """What follows a synchronization, up to the next one, a gap, or the end.

    accesses       of the trace
    start, stop    the slots from its own first one up to the next stretch's
    is_followed    another stretch follows without a gap, and nothing was lost in this one
    is_cut         accesses were lost at its end
    is_known       its slots are
    """

    accesses: list[Access]
    start: int
    stop: int
    is_followed: bool = False
    is_cut: bool = False
    is_known: bool = True


def _stretches(slots: Slots, accesses: list[Access], length: int) -> Iterator[_Stretch]:
    """All that have accesses, of a history of that length."""
    groups = [(sync, list(group)) for sync, group in groupby(accesses, attrgetter("sync"))]
    for number, (sync, group) in enumerate(groups):
        following = groups[number + 1][0] if number + 1 < len(groups) else -1
        gap = slots.gap_after(sync)
        end = length if gap is None else gap
        is_cut = AccessNote.LOST_AFTER in group[-1].notes
        is_followed = sync < following <= end and not is_cut
        end = following if is_followed else end
        yield _Stretch(group, slots.at(sync), slots.at(end), is_followed, is_cut, end <= slots.end)


def _runs(stretches: Iterable[_Stretch]) -> Iterator[list[_Stretch]]:
    """Stretches that follow each other without a gap or a loss; those that are not known alone."""
    run: list[_Stretch] = []
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


def _run(slots: Slots, run: list[_Stretch]) -> list[Access]:
    """The accesses of a run."""
    if not run[0].is_known:
        return [access.noted(AccessNote.TOO_FAR) for access in run[0].accesses]
    exact = [_exact(slots, stretch) for stretch in run]
    if None in exact and (whole := _whole(slots, run)) is not None:
        return whole
    first, last = run[0].start, run[-1].stop
    found: list[Access] = []
    for stretch, placed in zip(run, exact, strict=True):
        found += placed or _some(slots, stretch, max(stretch.start - SLACK, first), min(stretch.stop + SLACK, last))
    return found


def _exact(slots: Slots, stretch: _Stretch) -> list[Access] | None:
    """The accesses, if they are those of the stretch and no other."""
    laid = lay(slots.reaches, stretch.accesses, stretch.start, stretch.stop)
    if laid is None or (stretch.is_followed and len(laid.steps) < len(stretch.accesses)):
        return None
    ends = [end for end in laid.ends if stretch.is_cut or not are_missing(slots.reaches, end, stretch.stop)]
    if not ends:
        return None
    placed = list(map(_placed, stretch.accesses, laid.places(ends, slots.positions)))
    return placed + [access.noted(AccessNote.BEYOND) for access in stretch.accesses[len(placed) :]]


def _whole(slots: Slots, run: list[_Stretch]) -> list[Access] | None:
    """The accesses of a run, if all together are those of all stretches, at most SLACK of them too late or early."""
    together = list(chain.from_iterable(stretch.accesses for stretch in run))
    found = _exact(slots, _Stretch(together, run[0].start, run[-1].stop, False, run[-1].is_cut))
    if found is None:
        return None
    number = 0
    for stretch in run:
        position = found[number].position
        if position is not None and abs(slots.at(position) - stretch.start) > SLACK:
            return None
        number += len(stretch.accesses)
    return found


def _some(slots: Slots, stretch: _Stretch, start: int, stop: int) -> list[Access]:
    """The accesses of a stretch of which some are missing, between two slots."""
    found = certain(slots.reaches, stretch.accesses, start, stop)
    if found is None:
        return [access.noted(AccessNote.DISAGREE) for access in stretch.accesses]
    positions = (None if slot is None else slots.positions[slot] for slot in found)
    return list(map(_placed, stretch.accesses, positions))


def _placed(access: Access, position: int | None) -> Access:
    return access.noted(AccessNote.AMBIGUOUS) if position is None else access._replace(position=position)


def _out_of_sync(access: Access) -> Access:
    return access if AccessNote.NO_REQUEST in access.notes else access.noted(AccessNote.NOT_IN_SYNC)
