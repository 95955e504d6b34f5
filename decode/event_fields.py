"""What happened, as named fields for programs: JSON rows and MI results have the same (docs/json.md)."""

from rvtrace_gdb.decode.events import GAP_KINDS, ContextChange, Start, Stop, Trap, TrapKind
from rvtrace_gdb.decode.history import Event

Fields = dict[str, int | str | list[str]]


def fields(event: Event) -> Fields:
    """The facts of an event; what is not known has no field."""
    fact = event.fact
    found: Fields = {}
    if isinstance(fact, Trap):
        found = _trap(fact)
    elif isinstance(fact, ContextChange):
        found["changed"] = list(fact.changed)
    elif isinstance(fact, Start | Stop):
        found["reason"] = fact.reason.value
    else:
        found["reason"] = fact.cause.value
    if event.kind in GAP_KINDS and event.end is not None:
        found["trace-byte-end"] = event.end
    return found


def _trap(trap: Trap) -> Fields:
    found: Fields = {}
    if trap.kind is not TrapKind.UNKNOWN:
        found["interrupt"] = int(trap.kind is TrapKind.INTERRUPT)
    if trap.cause is not None:
        found["cause"] = trap.cause
    if trap.value is not None:
        found["value"] = f"0x{trap.value:x}"
    return found
