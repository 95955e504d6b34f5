"""What happened between the rows of a history, for who lists them: traps, changes of context, times.

Places where nothing is missing and nothing happened to the program are left out: where the history begins and ends,
where it goes on behind a gap, and where the debugger only halted the hart. `trace events` has them.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.event_wording import context_words, says_its_kind
from rvtrace_gdb.decode.events import GAP_KINDS, MARKS, Context, EventKind, Start, StartReason, Stop, StopReason
from rvtrace_gdb.decode.history import GAP, Event, History

AT_MOST = 8  # events listed at one place

Place = tuple[int] | tuple[int, str, int]
"""An address, and for code that is not of the ELF that was traced, its function and the offset in it."""
Said = tuple[str, str, Place | None, bool]
"""Kind, text, for a trap where it hit, and whether the text says by itself what kind it is."""


class Row(NamedTuple):
    """What happened before the row with this *number*, which is that of a row, or the one after the last.

    time   known at this very place, None: not known, or not asked for
    ticks  since the last time known before; less than 0 where the trace's clock was set back
    """

    number: int
    said: list[Said]
    time: int | None
    ticks: int | None


def between(history: History, program: ContextImages, begin: int, end: int, *, times: bool = True) -> Iterator[Row]:
    """What happened before the rows numbered *begin* to *end* - 1, and after the last row of all if that is there."""
    first, stop = begin - 1, min(end - 1, len(history))
    if stop == len(history) and first < stop:
        stop += 1
    said = _said(history, program, first, stop)
    stamps = _stamps(history, first, stop) if times else {}
    for position in sorted(said.keys() | stamps.keys()):
        time, ticks = stamps.get(position, (None, None))
        if position in said or ticks != 0:  # that no time passed need not be said
            yield Row(position + 1, said.get(position, []), time, ticks)


def _stamps(history: History, first: int, stop: int) -> dict[int, tuple[int, int | None]]:
    """{position: (time, ticks since the one before)}."""
    positions, times = history.times.arrays
    begin, end = bisect_left(positions, first), bisect_left(positions, stop)
    before = [times[begin - 1] if begin else None, *times[begin:end]]
    return {
        position: (now, None if last is None else now - last)
        for position, now, last in zip(positions[begin:end], times[begin:end], before, strict=False)
    }


def _said(history: History, program: ContextImages, first: int, stop: int) -> dict[int, list[Said]]:
    found: dict[int, list[Said]] = {}
    for position, group in groupby(history.events_between(first, stop), attrgetter("position")):
        events = _worth_saying(history, position, list(group))
        said = [_of_event(history, program, event) for event in events[:AT_MOST]]
        if len(events) > AT_MOST:
            said.append(("note", f"and {len(events) - AT_MOST} more: `trace events` has them", None, False))
        found[position] = said
    for position, text in _changes(history, first, stop):
        found.setdefault(position, []).append(("context", text, None, True))
    return {position: said for position, said in found.items() if said}


def _worth_saying(history: History, position: int, events: Sequence[Event]) -> list[Event]:
    """Events at one position; contexts are told apart from these."""
    if position < len(history) and history.pc(position) == GAP:
        return [event for event in events if event.kind not in GAP_KINDS and event.kind is not EventKind.CONTEXT]
    begins = position == 0 or history.pc(position - 1) == GAP
    left_out = {EventKind.CONTEXT}
    if position == len(history) or _only_halted(events):
        left_out.add(EventKind.TRACE_OFF)
    if begins or _only_halted(events):
        left_out.add(EventKind.TRACE_ON)
    return [event for event in events if event.kind not in left_out and not (begins and _is_start(event))]


def _is_start(event: Event) -> bool:
    """Decoding begins, and nothing else happens."""
    return event.kind is EventKind.SYNC and not (isinstance(event.fact, Start) and event.fact.reason in MARKS)


def _only_halted(events: Sequence[Event]) -> bool:
    """The debugger halted the hart and let it go on. E-Trace does not say why tracing stops: nothing is missing."""
    switched = [event.fact for event in events if event.kind in (EventKind.TRACE_OFF, EventKind.TRACE_ON)]
    return all(
        fact.reason in _HALTS and fact.open is None
        if isinstance(fact, Stop)
        else isinstance(fact, Start) and fact.reason in _RESUMES
        for fact in switched
    )


_HALTS = frozenset({StopReason.DEBUG_MODE, StopReason.UNTOLD})
_RESUMES = frozenset({StartReason.EXIT_FROM_DEBUG, StartReason.TRACING_STARTS})


def said_of(history: History, program: ContextImages, event: Event) -> Said | None:
    """What is said of one event; None: nothing is."""
    events = history.events_between(event.position, event.position + 1)
    worth = event in _worth_saying(history, event.position, events)
    return _of_event(history, program, event) if worth else None


def _of_event(history: History, program: ContextImages, event: Event) -> Said:
    hit = None
    if event.kind is EventKind.TRAP and event.last_pc is not None:
        hit = _place(history, program, event.last_pc, max(event.position - 1, 0))
    text = event.as_gap if event.kind in GAP_KINDS else event.text
    return event.kind.value.replace(" ", "-"), text, hit, says_its_kind(event.fact)


def _place(history: History, program: ContextImages, pc: int, position: int) -> Place:
    """An address, as the program that ran at a position calls it."""
    image = program.image_of(history.context_at(position))
    if image is program.base and image.path and not image.is_added(pc):
        return (pc,)
    symbol = image.symbol(pc)
    return (pc,) if symbol is None else (pc, *symbol)


def _changes(history: History, first: int, stop: int) -> Iterator[tuple[int, str]]:
    """(position from which on, what is different in the context)."""
    contexts = history.contexts
    begin = bisect_left(contexts, first, key=itemgetter(0))
    end = bisect_left(contexts, stop, key=itemgetter(0))
    before = contexts[begin - 1][1] if begin else Context()
    for position, now in contexts[begin:end]:
        if now != before:
            yield position, _change(before, now)
        before = now


def _change(before: Context, now: Context) -> str:
    """What is new, in words; all of it where something is not known any more."""
    same_mode = (before.prv, before.virtual) == (now.prv, now.virtual)
    new = Context(
        None if same_mode else now.prv,
        now.virtual,
        None if before.scontext == now.scontext else now.scontext,
        None if before.hcontext == now.hcontext else now.hcontext,
    )
    return context_words(now if new._replace(virtual=False) == Context() else new)
