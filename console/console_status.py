"""The console's status line: what the target does, what the encoders do, how many bytes were captured."""

from console.engine import Engine
from console.engine_state import TraceState, trace_state
from support.errors import RvtraceError

_ENDED = ("Tracing stopped.", "The trace had ended already.")


class Status:
    """Kept up to date by what commands print, and while tracing by asking again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._trace = TraceState()
        self._stale = False

    def heard(self, command: str, text: str) -> None:
        """A command was done, and printed this."""
        lines = text.splitlines()
        told = trace_state(lines)
        if any(line in _ENDED for line in lines):
            self._trace = told._replace(encoders=dict.fromkeys(self._trace.encoders, "stopped"))
        elif told.encoders:
            self._trace = told
        elif any(line.startswith("tracing: ") for line in lines):
            self._stale = True
        elif told.captured is not None:
            self._trace = told
        self._stale = self._stale or self._trace.tracing

    def refresh(self) -> bool:
        """Ask, if there can be anything new; whether that was so. What cannot be asked stays as it was."""
        if not self._stale and not (self._engine.state.running and self._trace.tracing):
            return False
        self._stale = False
        before = self._trace
        try:
            self._trace = self._engine.trace_state()
        except RvtraceError:
            return False
        return self._trace != before

    def __str__(self) -> str:
        return f"{self._engine.state.word} | {self._trace}"
