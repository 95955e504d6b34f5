"""The facts of events as fields for programs: JSON rows and results of the machine interface have the same
(docs/json.md).
"""

from rvtrace_gdb.decode.history.events import (
    GAP_KINDS,
    ContextChange,
    MismatchedReturn,
    Start,
    Stop,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.history.hart_events import HartEvent
from rvtrace_gdb.decode.history.history import Event

EventFields = dict[str, int | str | list[str] | list[int]]


def event_fields(event: Event) -> EventFields:
    """Return the fields of an event for programs; an unknown value has no field."""
    fact = event.fact
    found: EventFields = {}
    if isinstance(fact, Trap):
        found = _trap_fields(fact)
    elif isinstance(fact, ContextChange):
        found["changed"] = list(fact.changed)
    elif isinstance(fact, Start | Stop):
        found["reason"] = fact.reason.value
    elif isinstance(fact, HartEvent):
        found = _hart_event_fields(fact)
    elif isinstance(fact, MismatchedReturn):
        pass  # where it should have gone is a place, as where it went is
    else:
        found["reason"] = fact.cause.value
    if event.kind in GAP_KINDS and event.end is not None:
        found["trace-byte-end"] = event.end
    return found


def _trap_fields(trap: Trap) -> EventFields:
    found: EventFields = {}
    if trap.kind is not TrapKind.UNKNOWN:
        found["interrupt"] = int(trap.kind is TrapKind.INTERRUPT)
    if trap.cause is not None:
        found["cause"] = trap.cause
    if trap.value is not None:
        found["value"] = f"0x{trap.value:x}"
    if trap.from_hart:
        found["from-hart"] = 1
    return found


def _hart_event_fields(fact: HartEvent) -> EventFields:
    found: EventFields = {}
    if fact.number is not None:
        found[fact.kind.numbered] = fact.number
    if fact.values:
        found["counters"] = list(fact.values)
    if fact.written is not None:
        found |= {"channel": fact.written.channel, "value": f"0x{fact.written.value:x}"}
        found |= {"size": fact.written.size} if fact.written.size else {}
    return found
