"""What is wrong with a decoded history, in words: it contradicts its program, parts cannot be decoded, it is empty."""

from typing import TYPE_CHECKING

from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import (
    Captured,
    CapturedRecords,
    CapturedSink,
    CapturedTandem,
)
from rvtrace_gdb.session.errors import NoFlow, NoTrace
from rvtrace_gdb.support.text import warning

if TYPE_CHECKING:
    pass


def mismatch(history: History, image: Image) -> str | None:
    """Return a message if trace and program contradict each other, which most likely means that another program ran.

    Code that is not in the ELF may also have been overwritten after it ran, or written after it had been read.
    """
    found = [event for event in history.doubtful_events if event.kind is EventKind.MISMATCH]
    if not found:
        return None
    places = f", and {len(found) - 1} more such places" if len(found) > 1 else ""
    pc = found[0].last_pc
    if pc is not None and image.is_of_target(pc):
        return f"{found[0].text}{places}: that memory has changed since the code in it ran"
    return f"{found[0].text}{places}: is this the program that ran?"


def losses(history: History) -> str | None:
    """Return a message if bytes could not be decoded, whatever the program is."""
    found = [event for event in history.doubtful_events if event.kind is EventKind.LOSS and not is_of_check(event)]
    if not found:
        return None
    first = f"at byte {found[0].offset:#x}: {found[0].text}"
    if len(found) == 1:
        return f"a part of the trace cannot be decoded, {first}"
    return f"{len(found)} parts of the trace cannot be decoded, the first {first}"


def is_of_check(event: Event) -> bool:
    """Return whether only a check has found an event."""
    return isinstance(event.fact, Loss) and event.fact.cause is LossCause.ENCODED_OTHERWISE


_DOUBTS = (NoteCause.TIME_BACK, NoteCause.LARGE_COUNT)


def doubts(history: History) -> list[str]:
    """Return a message for each kind of thing that is possible, and hardly what anybody meant."""
    notes = [(event, event.fact.cause) for event in history.doubtful_events if isinstance(event.fact, Note)]
    found: list[str] = []
    for cause in _DOUBTS:
        events = [event for event, noted in notes if noted is cause]
        if events:
            more = f" (the first of {len(events)} such places)" if len(events) > 1 else ""
            found.append(f"at byte {events[0].offset:#x}: {events[0].text}{more}")
    return found


def contradictions(history: History, image: Image, who: str = "", *, misread: bool = False) -> list[str]:
    """Return a line for each thing that is wrong with a history. *who*: a prefix that names its hart, if there are
    several.

    *misread*: the trace is known to be decoded with wrong parameters, so that contradictions do not tell against the
    program.
    """
    problems = (None if misread else mismatch(history, image), losses(history), *doubts(history))
    lines: list[str] = [warning(f"{who}{problem}") for problem in problems if problem is not None]
    if misread or problems[0] is None:
        return lines
    from rvtrace_gdb.session.patched_code import advice  # few traces contradict their program

    more = advice(history, image)
    return lines if more is None else [*lines, more]


def nothing_traced(*, live: bool) -> NoTrace:
    """Return an error that says that there are no bytes. *live*: there may be some later."""
    if not live:
        return NoTrace("the trace is empty: it has 0 bytes")
    return NoTrace("nothing has been traced yet: let the program run (`continue`), then ask again")


def nothing_decoded(sink: Captured, history: History, image: Image, *, live: bool, why: str = "") -> NoTrace:
    """Return an error that says why a history is empty. *live*: it comes from a target that can trace more.

    *why*: what is known to be wrong with the settings of its encoder.
    """
    if not sink.data:
        return nothing_traced(live=live)
    if isinstance(sink, CapturedTandem):
        from rvtrace_gdb.session.formats import tandem

        wrong = tandem.advice(sink.data, sink.in_force.parameters, wrapped=sink.wrapped, by_elf=bool(image.path))
        if wrong:
            return NoTrace(wrong)
    if history.kind_counts.get(EventKind.HART_EVENT):
        from rvtrace_gdb.session.queries.hart_events import hart_event_counts, no_flow  # few traces have any

        counts = hart_event_counts(history)
        return NoFlow(no_flow(counts))
    problem = mismatch(history, image)
    if isinstance(sink, CapturedRecords) and problem is None:
        return NoTrace("the records do not show what ran: `trace ctr show` lists them")
    if problem is not None:
        return NoTrace(problem)
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    if traps:
        handler = f"the last an {traps[-1].text} with the handler at 0x{traps[-1].next_pc or 0:x}"
        older = "; older trace was overwritten, with what led there: `trace start -stop-on-wrap` keeps the beginning"
        more = older if live and isinstance(sink, CapturedSink) and sink.wrapped else ""
        return NoTrace(f"no instruction ran in this trace, only traps: {len(traps)}, {handler}{more}")
    size = f"{len(sink.data)} byte{'s' if len(sink.data) > 1 else ''} of trace"
    if why:
        return NoTrace(f"{size}, in which no synchronization can be decoded {why}")
    if isinstance(sink, CapturedTandem):
        return NoTrace(f"{size}, and no instruction in it that retired: `trace dump` lists the groups")
    if any(event.next_pc is not None for event in history.events):
        more = ": let the program run on, or give it a larger buffer" if live else ""
        return NoTrace(f"{size} with a synchronizing message, and nothing after it that can be decoded{more}")
    more = "; ask for more of them (`trace start -sync-period N`), or use a larger buffer" if live else ""
    if not more and any(event.kind is EventKind.NOTE for event in history.events):
        more = ": `trace dump` lists the messages there are"
    return NoTrace(f"{size} without a synchronizing message, where decoding could start{more}")
