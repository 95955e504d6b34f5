"""What a trace does not show of what a hart ran, by its cause: losses, and stretches that were not traced."""

from collections import Counter

from rvtrace_gdb.decode.history.events import LOSSES, Loss, Start, Stop
from rvtrace_gdb.decode.history.history import Event, History

UNKNOWN_TIMES = "gaps in the trace, where nobody knows what ran"
"""What forms without a place for gaps leave out, for `Written.left_out`."""


def missing(history: History, part: range | None = None) -> Counter[str]:
    """Return how often each cause left something out, by the name of the cause: of all gaps, or those at the positions
    of a *part*, and of the losses whose place in the history is not known.
    """
    gaps = (position for position in history.gap_positions if part is None or position in part)
    found: Counter[str] = Counter(cause(history.gap_at(position)) for position in gaps)
    found.update(cause(event) for event in placeless(history))
    return found


def placeless(history: History) -> list[Event]:
    """Return the losses that have no gap, because it is not known where in a stretch something is missing."""
    return [event for event in history.events if isinstance(event.fact, Loss) and not event.fact.has_place]


def cause(event: Event) -> str:
    """Return the name of what an event left out: "lost: messages-lost", "not traced: debug-mode"."""
    return f"{'lost' if event.kind in LOSSES else 'not traced'}: {_reason(event)}"


def _reason(event: Event) -> str:
    fact = event.fact
    if isinstance(fact, Start | Stop):
        return str(fact.reason.value)
    return str(fact.cause.value if isinstance(fact, Loss) else event.kind.value)
