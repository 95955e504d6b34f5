"""What decoders have to say beside the instructions, and how it comes into a history: events, gaps, contexts."""

from collections.abc import Iterable
from typing import NamedTuple

from rvtrace_gdb.decode.events import ContextChange, EventKind, Fact, Loss, LossCause, Note, NoteCause, Start, Trap
from rvtrace_gdb.decode.history import HistoryBuilder
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.streams import Program


class Report(NamedTuple):
    """Something to record after a step's path. *lost*: as a gap. *resumed*: decoding goes on at this address again.

    *after*: a change of context holds after so many instructions that ran for certain and are not in the history yet.
    """

    kind: EventKind
    fact: Fact
    last_pc: int | None = None
    next_pc: int | None = None
    lost: bool = False
    elsewhere: bool = False
    """Tracing went on at another place than it stopped at: a gap precedes."""
    untold: bool = False
    """Nobody can tell whether it did, since the next place was not told when it stopped: a gap precedes, too."""
    resumed: int | None = None
    after: int = 0


def record(builder: HistoryBuilder, reports: Iterable[Report], offset: int, *, stop_at_error: bool = False) -> bool:
    """Puts *reports*, found at byte *offset* of the trace, into a history. True: decoding is to stop here."""
    for report in reports:
        if report.lost:
            builder.gap(report.kind, offset, report.fact)
            if stop_at_error:
                builder.event(EventKind.NOTE, offset, Note(NoteCause.STOPPED_AT_LOSS))
                return True
            continue
        if report.elsewhere or report.untold:
            fact = report.fact
            builder.add_gap(fact if isinstance(fact, Start | Trap) and not report.untold else None)
        if report.resumed is not None:
            builder.resume(report.resumed, offset)
        builder.event(report.kind, offset, report.fact, last_pc=report.last_pc, next_pc=report.next_pc)
        if isinstance(report.fact, ContextChange):
            builder.context(report.fact.now, report.after)
    return False


def contradiction(program: Program, image: Image, at: int, why: str, packet: str) -> Report:
    """Trace and code do not agree at this address, or there is no code. *packet*: what the trace said it with."""
    if absent := image.absent_at(at):
        return Report(EventKind.LOSS, Loss(LossCause.ABSENT_CODE, (at, absent, packet)), lost=True)
    if program.partial and not image.knows(at):
        return Report(EventKind.LOSS, Loss(LossCause.NO_CODE, (at, packet)), lost=True)
    return Report(EventKind.MISMATCH, Loss(LossCause.MISMATCH, (image.origin(at), at, why, packet)), lost=True)
