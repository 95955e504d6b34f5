"""What a check of the trace has found out, for lists and for `status`."""

from collections.abc import Sequence

from rvtrace_gdb.decode.check.verdict import Differing, Verdict
from rvtrace_gdb.decode.history.event_wording import difference_text
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.rows.answer_text import AGREES, CANNOT_TELL, COMPARED, DIFFERS
from rvtrace_gdb.rows.answers import CheckRow, DifferingRow


def row_of(hart: int, verdict: Verdict) -> CheckRow:
    """Return what was found out about a hart."""
    beginning = verdict.beginning is not None
    differ = verdict.content + verdict.timing + beginning
    intervals = verdict.agreed + differ + verdict.lost + verdict.unchecked
    return CheckRow(
        hart=hart,
        conclusion=_conclusion(verdict),
        intervals=intervals,
        agree=verdict.agreed,
        differ=differ,
        lost=verdict.lost,
        unchecked=verdict.unchecked,
        differing=[_differing(one) for one in verdict.damaged],
    )


def compared_row(hart: int, history: History) -> CheckRow:
    """Return the answer for a trace that has each transfer: decoding compares them with the program, and what does not
    fit is a gap.
    """
    return CheckRow(
        hart=hart, conclusion=COMPARED, intervals=0, agree=0, differ=0, lost=history.gaps, unchecked=0, differing=[]
    )


def losses_of(verdict: Verdict) -> Sequence[Event]:
    """Return the intervals that are damaged as losses of the history."""
    return [_loss(one) for one in sorted(verdict.damaged, key=lambda one: one.position)]


def _conclusion(verdict: Verdict) -> str:
    if verdict.damaged:
        return DIFFERS
    return CANNOT_TELL if verdict.is_unsure or not verdict.agreed else AGREES


def _differing(one: Differing) -> DifferingRow:
    offset, made, sent, timing, _ = one.difference
    return DifferingRow(
        start=one.start,
        end=one.end,
        first=one.begin + 1,
        last=one.position,
        offset=offset,
        made=made,
        sent=sent,
        timing=timing,
        text=difference_text(made, sent, offset, timing=timing),
    )


def _loss(one: Differing) -> Event:
    offset, made, sent, timing, _ = one.difference
    fact = Loss(LossCause.ENCODED_OTHERWISE, (made, sent, offset, int(timing)))
    return Event(one.position, EventKind.LOSS, one.start, fact, end=one.end)
