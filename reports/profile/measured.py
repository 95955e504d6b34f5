"""The intervals of a profile in their order: the traps, the most frequent first, then the calls of functions."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.reports.profile.hottest import function_name
from rvtrace_gdb.reports.profile.model import IntervalTally, MeasuredKind, Profile, TrapCause


class MeasuredRow(NamedTuple):
    """Intervals, some of which were measured. *name*: "calls of f", or what the traps are."""

    name: str
    kind: MeasuredKind
    tally: IntervalTally


def measured_rows(profile: Profile) -> Iterator[MeasuredRow]:
    """Yield the intervals of which some were measured: of functions, those with the most instructions first."""
    found = [(kind, tally) for kind, tally in profile.intervals.items() if tally.instructions]
    for kind, tally in sorted(found, key=lambda it: (it[0].trap is None, -_weight(*it), it[0].function, str(it[0]))):
        name = f"calls of {function_name(profile, kind.function)}" if kind.trap is None else cause_text(kind.trap)
        yield MeasuredRow(name, kind, tally)


def _weight(kind: MeasuredKind, tally: IntervalTally) -> int:
    lengths = tally.instructions.items()
    return sum(length * times if kind.trap is None else times for length, times in lengths)


def cause_text(cause: TrapCause) -> str:
    """Return what traps of a cause are called."""
    return fact_text(Trap(TrapKind(cause.kind), cause.cause))
