"""What decoders have to say beside the instructions, and how it comes into a history: events, gaps, contexts."""

from collections.abc import Iterable
from typing import NamedTuple

from decode.history import Context, EventKind, HistoryBuilder
from decode.image import Image
from decode.streams import Program


class Report(NamedTuple):
    """Something to record after a step's path. *lost*: as a gap. *resumed*: decoding goes on at this address again.

    *context*: runs from here on, or after so many instructions that ran for certain and are not in the history yet.
    """

    kind: EventKind
    text: str
    last_pc: int | None = None
    next_pc: int | None = None
    lost: bool = False
    elsewhere: bool = False
    """Tracing went on at another place than it stopped at: a gap precedes."""
    untold: bool = False
    """Nobody can tell whether it did, since the next place was not told when it stopped: a gap precedes, too."""
    resumed: int | None = None
    context: Context | None = None
    after: int = 0


def record(builder: HistoryBuilder, reports: Iterable[Report], offset: int, *, stop_at_error: bool = False) -> bool:
    """Puts *reports*, found at byte *offset* of the trace, into a history. True: decoding is to stop here."""
    for report in reports:
        if report.lost:
            builder.gap(report.kind, offset, report.text)
            if stop_at_error:
                text = "decoding stopped here, at the first loss, as asked"
                builder.event(EventKind.NOTE, offset, text)
                return True
            continue
        if report.elsewhere or report.untold:
            builder.add_gap("" if report.untold else report.text)
        if report.resumed is not None:
            builder.resume(report.resumed)
        builder.event(report.kind, offset, report.text, last_pc=report.last_pc, next_pc=report.next_pc)
        if report.context is not None:
            builder.context(report.context, report.after)
    return False


def contradiction(program: Program, image: Image, at: int, why: str, packet: str) -> Report:
    """Trace and code do not agree at this address, or there is no code. *packet*: what the trace said it with."""
    kind, text = EventKind.MISMATCH, f"trace does not match {image.origin(at)} at 0x{at:x}: {why}"
    if absent := image.absent_at(at):
        kind, text = EventKind.LOSS, f"at 0x{at:x}: there is no code, {absent} is there and was not supplied"
    elif program.partial and not image.knows(at):
        kind, text = EventKind.LOSS, f"at 0x{at:x}: there is no code in what was supplied"
    return Report(kind, f"{text} ({packet})", lost=True)
