"""What is missing in a history, by cause, with the bytes of the trace that say no more, and where."""

from collections import defaultdict

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.events import GAP_KINDS, LOSSES, NO_OFFSET, Loss, Stop
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.reports.profile.model import GapCause, GapPlace, GapTally, HartTotals, Profile, largest
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import Progress

_EVERY = 1 << 10


def add_gaps(
    profile: Profile,
    places: CodePlaces,
    calls: CallHistory,
    positions: range,
    trace_bytes: int | None,
    progress: Progress,
    *,
    goes_on: bool = False,
) -> None:
    """Put what is missing at some *positions* of a history into a profile. *trace_bytes*: of its trace, None if that is
    not known; *goes_on*: more comes after the history. Raises what *progress* raises.
    """
    end = positions.stop + (positions.stop == len(calls.history) and not goes_on)
    events = [
        event
        for event in calls.history.events_between(positions.start, end)
        if event.kind in LOSSES or (event.kind in GAP_KINDS and event.position < len(calls.history))
    ]  # after the last instruction tracing has just ended
    found: dict[GapCause, list[GapPlace]] = defaultdict(list)
    for number, event in enumerate(events):
        if number % _EVERY == 0:
            progress("collecting losses (parts)", number, len(events))
        found[cause_of(event)].append(_place(profile.harts[0], places, calls, event, trace_bytes))
    for cause, gaps in sorted(found.items()):
        profile.gaps[cause] = GapTally(len(gaps), sum(gap.size for gap in gaps), largest(gaps))


def _place(
    totals: HartTotals, places: CodePlaces, calls: CallHistory, event: Event, trace_bytes: int | None
) -> GapPlace:
    until = trace_bytes if event.end is None else event.end
    is_loss = event.kind in LOSSES and event.offset != NO_OFFSET and until is not None
    last = max(len(calls.history) - 1, 0)
    before, after = (
        None if pc is None else places.place(calls.image_at(min(max(position, 0), last)), pc)
        for position, pc in ((event.position - 1, event.last_pc), (event.position + 1, event.next_pc))
    )
    return GapPlace(
        size=max((until or 0) - event.offset, 0) if is_loss else 0,
        capture=totals.capture,
        hart=totals.hart,
        number=event.position + 1,
        offset=event.offset,
        before=before,
        after=after,
        text=event.text,
    )


def cause_of(event: Event) -> GapCause:
    """Return why something is missing, by its event."""
    fact = event.fact
    cause = fact.cause.value if isinstance(fact, Loss) else fact.reason.value if isinstance(fact, Stop) else ""
    return GapCause(event.kind.value, cause, event.kind in LOSSES)
