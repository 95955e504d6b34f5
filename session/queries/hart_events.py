"""What a trace says of a hart besides its flow: how many events of each kind, and what can be asked without a flow."""

from collections import Counter
from collections.abc import Iterable, Mapping

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.hart_events import HartEvent, HartEventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.support.text import counted


def hart_event_counts(history: History) -> Mapping[HartEventKind, int]:
    """Return how many events of each kind a history has, in the order of the kinds."""
    if not history.kind_counts.get(EventKind.HART_EVENT):
        return {}
    counts = Counter(event.fact.kind for event in history.events if isinstance(event.fact, HartEvent))
    return {kind: counts[kind] for kind in HartEventKind if counts[kind]}


def has_events_alone(histories: Iterable[History]) -> bool:
    """Return whether no instruction is in any of the histories, but events of harts are."""
    found = list(histories)
    return not any(map(len, found)) and any(history.kind_counts.get(EventKind.HART_EVENT) for history in found)


def counted_events(counts: Mapping[HartEventKind, int]) -> list[str]:
    """Return the texts of the counts, as "379 PC samples"."""
    return [counted(count, kind.noun) for kind, count in counts.items()]


def no_flow(counts: Mapping[HartEventKind, int]) -> str:
    """Return the message for a question about instructions, of a trace that has none of them but these events."""
    more = "" if HartEventKind.PC_SAMPLE not in counts else ", `trace report` counts samples"
    more += "" if HartEventKind.WRITTEN not in counts else ", `trace itc` prints what was written"
    return (
        f"this trace has no flow, so no instruction is known to have run: it has {', '.join(counted_events(counts))}:"
        f" `trace events` lists them{more}"
    )
