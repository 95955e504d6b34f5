"""What a history lacks: its gaps, and the losses of which it is not known where in a stretch they are.

Every picture, file and statistic that shows or counts what is missing takes it from here.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind, Loss
from rvtrace_gdb.decode.history.history import GAP, Event, History

_SYNCHRONIZED = frozenset({EventKind.SYNC, EventKind.TRACE_ON})


class MissingPart(NamedTuple):
    """Something that a history lacks, by its *event*: a gap, which is at the position *begin* and ends before *end*; or
    a loss that was noticed before the instruction at *begin*, which is *end* too: it is anywhere from *since* on.
    """

    begin: int
    end: int
    event: Event
    since: int


def missing_parts(history: History, part: range | None = None) -> list[MissingPart]:
    """Return what a history lacks, in order: all of it, or what is missing, or may be, at the positions of a *part*.
    What was noticed after that part is at its end then.
    """
    gaps = (MissingPart(at, at + 1, history.gap_at(at), at) for at in history.gap_positions)
    found = sorted((*gaps, *placeless_losses(history)), key=lambda it: it[:2])
    if part is None or len(part) == len(history):
        return found
    inside = (it for it in found if it.since < part.stop and part.start < max(it.end, it.since + 1))
    return [it._replace(begin=min(it.begin, part.stop), end=min(it.end, part.stop)) for it in inside]


def losses_at_begin(history: History) -> Iterator[MissingPart]:
    """Yield what is known to be missing before the first instruction, where a history has no gap."""
    for event in history.events:
        if event.position > 0 or (len(history) and history.pc(0) == GAP):
            return
        if isinstance(event.fact, Loss) and event.fact.has_place:
            yield MissingPart(0, 0, event, 0)


def placeless_losses(history: History) -> Iterator[MissingPart]:
    """Yield the losses that have no gap, because it is not known where after a synchronization something is missing."""
    since = 0
    for event in history.events:
        if is_placeless(event):
            yield MissingPart(event.position, event.position, event, since)
        elif event.kind in _SYNCHRONIZED:
            since = event.position


def is_placeless(event: Event) -> bool:
    """Return whether an event is a loss whose place in the history is not known."""
    return isinstance(event.fact, Loss) and not event.fact.has_place
