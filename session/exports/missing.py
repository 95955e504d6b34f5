"""The names of what a trace does not show of what a hart ran: losses, and stretches that were not traced."""

from collections import Counter

from rvtrace_gdb.decode.history.events import LOSSES, Loss, Start, Stop
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.history.missing import missing_parts

UNKNOWN_TIMES = "gaps in the trace, where nobody knows what ran,"
"""What forms without a place for gaps leave out, for `Written.left_out`."""


def missing(history: History, part: range | None = None) -> Counter[str]:
    """Return how often each cause left something out, by the name of the cause: everywhere, or what is missing, or may
    be, at the positions of a *part*.
    """
    return Counter(cause(it.event) for it in missing_parts(history, part))


def cause(event: Event) -> str:
    """Return the name of what an event left out: "lost: messages-lost", "not traced: debug-mode"."""
    return f"{'lost' if event.kind in LOSSES else 'not traced'}: {_reason(event)}"


def _reason(event: Event) -> str:
    fact = event.fact
    if isinstance(fact, Start | Stop):
        return str(fact.reason.value)
    return str(fact.cause.value if isinstance(fact, Loss) else event.kind.value)
