"""The rows of a history: what is in them, and what happened between them.

Numbers count the positions of a `History` from 1, gaps included; *end* is the number after the last. Rows are for a
program that formats them elsewhere: gdb, which may not have the code that ran. Annotations describe what happened
between them: traps, changes of context, times. Places where nothing is missing and nothing happened to the program have
none: where the history begins and ends, where it continues after a gap, and where the debugger only halted the hart.
`trace events` lists them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from rvtrace_gdb.decode.history.event_wording import context_text, says_its_kind
from rvtrace_gdb.decode.history.events import GAP_KINDS, HALTS, EventKind, Start, Stop
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.rows.list_rows import Annotation, Happened, Place, ShortHistoryRow


def rows(history: History, program: ContextImages, begin: int, end: int) -> Iterator[ShortHistoryRow]:
    """Yield the rows numbered *begin* to *end* - 1, which count from 1."""
    end = min(end, len(history) + 1)
    history = history.window(begin - 1, end - 1)
    while begin < end:
        following = bisect_right(history.contexts, begin - 1, key=itemgetter(0))
        changes = following < len(history.contexts)
        until = min(end, history.contexts[following][0] + 1) if changes else end
        image = program.image_of(history.context_at(begin - 1))
        yield from _stretch(history, image, image is not program.base, begin, until)
        begin = until


def _stretch(history: History, image: Image, of_process: bool, begin: int, end: int) -> Iterator[ShortHistoryRow]:
    """Yield rows of one context."""
    known: dict[int, tuple[str, str | None, int] | None] = {}
    own = history.code(begin - 1, end - 1)
    for number, pc in enumerate(history.pcs(begin - 1, end - 1), begin):
        if pc == GAP:
            yield (number, None, history.gap_at(number - 1).as_gap)
            continue
        if pc not in known:
            elsewhere = of_process or not image.path or image.is_added(pc)
            known[pc] = _code_columns(image, pc, named=elsewhere) if elsewhere or history.has_code else None
        code = known[pc]
        if number - 1 in own:
            code = (own[number - 1].hex(), *((None, 0) if code is None else code[1:]))
        yield (number, pc) if code is None else (number, pc, *code)


def _code_columns(image: Image, pc: int, *, named: bool) -> tuple[str, str | None, int] | None:
    """Return the bytes of an instruction, and its function and the offset in it, if gdb may not know them (*named*)."""
    try:
        code = image.read(pc, image.instruction(pc).length).hex()
    except (CodeMissing, UndecodableInstruction):
        return None
    name, offset = (image.symbol(pc) if named else None) or (None, 0)
    return code, name, offset


AT_MOST = 8  # events listed at one place

def annotations(
    history: History, program: ContextImages, begin: int, end: int, *, times: bool = True
) -> Iterator[Annotation]:
    """Yield what happened before the rows numbered *begin* to *end* - 1, and after the history's last row if that is
    included.
    """
    first, stop = begin - 1, min(end - 1, len(history))
    history = history.window(first, stop)
    if stop == len(history) and first < stop:
        stop += 1
    said = _happened_by_position(history, program, first, stop)
    stamps = _stamps(history, first, stop) if times else {}
    for position in sorted(said.keys() | stamps.keys()):
        time, ticks = stamps.get(position, (None, None))
        if position in said or ticks != 0:  # it need not be reported that no time passed
            yield Annotation(position + 1, said.get(position, []), time, ticks)


def _stamps(history: History, first: int, stop: int) -> dict[int, tuple[int, int | None]]:
    """Return {position: (time, ticks since the previous one)}."""
    positions, times = history.times.arrays
    begin, end = bisect_left(positions, first), bisect_left(positions, stop)
    before = [times[begin - 1] if begin else None, *times[begin:end]]
    return {
        position: (now, None if last is None else now - last)
        for position, now, last in zip(positions[begin:end], times[begin:end], before, strict=False)
    }


def _happened_by_position(history: History, program: ContextImages, first: int, stop: int) -> dict[int, list[Happened]]:
    found: dict[int, list[Happened]] = {}
    for position, group in groupby(history.events_between(first, stop), attrgetter("position")):
        events = _worth_saying(history, position, list(group))
        said = [_of_event(history, program, event) for event in events[:AT_MOST]]
        if len(events) > AT_MOST:
            said.append(Happened("note", f"and {len(events) - AT_MOST} more: `trace events` has them", None, False))
        found[position] = said
    for position, text in _changes(history, first, stop):
        found.setdefault(position, []).append(Happened("context", text, None, True))
    return {position: said for position, said in found.items() if said}


def _worth_saying(history: History, position: int, events: Sequence[Event]) -> list[Event]:
    """Return the events at one position that are reported; changes of context are reported apart from these."""
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
    """Return whether decoding begins, and nothing else happens."""
    return event.kind is EventKind.SYNC and not (isinstance(event.fact, Start) and event.fact.reason.marks)


def _only_halted(events: Sequence[Event]) -> bool:
    """Return whether the debugger halted and resumed the hart. E-Trace does not say why tracing stops: nothing is
    missing.
    """
    switched = [event.fact for event in events if event.kind in (EventKind.TRACE_OFF, EventKind.TRACE_ON)]
    return all(
        fact.reason in HALTS and fact.open is None
        if isinstance(fact, Stop)
        else isinstance(fact, Start) and fact.reason.resumes
        for fact in switched
    )


def describe_event(history: History, program: ContextImages, event: Event) -> Happened | None:
    """Return what is reported about one event; None: nothing."""
    events = history.events_between(event.position, event.position + 1)
    worth = event in _worth_saying(history, event.position, events)
    return _of_event(history, program, event) if worth else None


def _of_event(history: History, program: ContextImages, event: Event) -> Happened:
    hit = None
    if event.kind in (EventKind.TRAP, EventKind.HART_EVENT) and event.last_pc is not None:
        hit = pc_place(history, program, event.last_pc, max(event.position - 1, 0))
    text = event.as_gap if event.kind in GAP_KINDS else event.text
    if event.kind is EventKind.HART_EVENT and event.next_pc is not None:
        text += f" to 0x{event.next_pc:x}"
    return Happened(kind=event.kind_name, text=text, place=hit, names_kind=says_its_kind(event.fact))


def pc_place(history: History, program: ContextImages, pc: int, position: int) -> Place:
    """Return an address in the program that ran at a position."""
    image = program.image_of(history.context_at(position))
    if image is program.base and image.path and not image.is_added(pc):
        return (pc,)
    symbol = image.symbol(pc)
    return (pc,) if symbol is None else (pc, *symbol)


def _changes(history: History, first: int, stop: int) -> Iterator[tuple[int, str]]:
    """Yield (position, change of the context from there on)."""
    contexts = history.contexts
    begin = bisect_left(contexts, first, key=itemgetter(0))
    end = bisect_left(contexts, stop, key=itemgetter(0))
    before = contexts[begin - 1][1] if begin else ProgramContext()
    for position, now in contexts[begin:end]:
        if now != before:
            yield position, _change(before, now)
        before = now


def _change(before: ProgramContext, now: ProgramContext) -> str:
    """Describe what is new in a context; the whole context if something is not known any more."""
    same_mode = (before.prv, before.virtual) == (now.prv, now.virtual)
    new = ProgramContext(
        None if same_mode else now.prv,
        now.virtual,
        None if before.scontext == now.scontext else now.scontext,
        None if before.hcontext == now.hcontext else now.hcontext,
    )
    return context_text(now if new._replace(virtual=False) == ProgramContext() else new)
