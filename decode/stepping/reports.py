"""What decoders report of a step, besides the instructions that ran: an event, a gap, a context."""

from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind, Fact, Loss, LossCause
from rvtrace_gdb.decode.program.image import Image, Program


class Report(NamedTuple):
    """Something to record after the path of a step. *lost*: as a gap. *resumed*: decoding resumes at this address.

    *after*: a change of context takes effect after this many instructions, which certainly ran but are not in the
    history yet.
    """

    kind: EventKind
    fact: Fact
    last_pc: int | None = None
    next_pc: int | None = None
    lost: bool = False
    moved: bool = False
    """Tracing resumed at another address than it stopped at, so a gap precedes."""
    maybe_moved: bool = False
    """Whether tracing resumed where it stopped is unknown, since the address was not reported then; so a gap precedes,
    too.
    """
    resumed: int | None = None
    after: int = 0


def contradiction_report(program: Program, image: Image, at: int, why: str, packet: str) -> Report:
    """Return the report that trace and code do not agree at this address, or that there is no code.

    *packet* is the name of what the trace reported it with.
    """
    if absent := image.absent_at(at):
        return Report(EventKind.LOSS, Loss(LossCause.ABSENT_CODE, (at, absent, packet)), lost=True)
    if program.partial and not image.knows(at):
        return Report(EventKind.LOSS, Loss(LossCause.NO_CODE, (at, packet)), lost=True)
    return Report(EventKind.MISMATCH, Loss(LossCause.MISMATCH, (image.origin(at), at, why, packet)), lost=True)
