"""Example facts of events, for tests to which their content does not matter much."""

from rvtrace_gdb.decode.history.events import (
    Loss,
    LossCause,
    Note,
    NoteCause,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)

INTERRUPT, EXCEPTION = Trap(TrapKind.INTERRUPT), Trap(TrapKind.EXCEPTION)
STARTS, STOPS = Start(StartReason.TRACING_STARTS), Stop(StopReason.UNSPECIFIED)
ENABLED, DISABLED = Start(StartReason.TRACE_ENABLED), Stop(StopReason.TRACE_DISABLED)
SYNCHRONIZED = Start(StartReason.UNSPECIFIED)


def lost(text: str = "lost") -> Loss:
    """Return a loss with this text."""
    return Loss(LossCause.MALFORMED, (text,))


def note(text: str) -> Note:
    """Return a note with this text."""
    return Note(NoteCause.CUT_OFF, (text,))
