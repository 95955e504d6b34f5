"""The console's status line: what the target does, what the encoders do, how many bytes were captured."""

import contextlib
from collections.abc import Mapping
from typing import Any

from rvtrace_gdb.console.engine import Engine
from rvtrace_gdb.console.engine_state import stop_of
from rvtrace_gdb.console.engine_trace import TraceState, trace_state
from rvtrace_gdb.console.mi import GdbError
from rvtrace_gdb.support.errors import RvtraceError

PLACE_AT_LEAST = 24  # columns


class Status:
    """Kept up to date by what commands tell, and while tracing by asking again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._trace = TraceState()
        self._place = ""
        self._stale, self._moved, self._stops = False, True, -1

    def heard(self, command: str, text: str) -> None:
        """A command was done: what it printed is in it for who watches, what it told is asked for."""
        self._moved = True
        with contextlib.suppress(RvtraceError):  # gdb has gone, or works still: who typed knows
            told = self._engine.told()
            if told is not None:
                self._learn(told)
        self._stale = self._stale or self._trace.tracing

    def _learn(self, told: Mapping[str, Any]) -> None:
        state = trace_state(told)
        if "ended" in told:
            self._trace = state._replace(encoders=dict.fromkeys(self._trace.encoders, "stopped"))
        elif "nothing" in told:
            self._trace = TraceState()
        elif state.known:
            self._trace = state
        self._stale = self._stale or "begun" in told

    def refresh(self, *, traced: bool = True) -> bool:
        """Ask, if there can be anything new; whether that was so. What cannot be asked stays as it was.

        *traced*: the trace components, too, which takes longer.
        """
        before = (self._trace, self._place)
        state = self._engine.state
        try:
            if not state.running and (self._moved or self._stops != state.stops):
                self._moved, self._stops = False, state.stops
                self._place = self._asked_place() if state.connected else ""
            if traced and (self._stale or (state.running and self._trace.tracing)):
                self._stale = False
                self._trace = self._asked_trace()
        except RvtraceError:
            return False
        return (self._trace, self._place) != before

    def _asked_trace(self) -> TraceState:
        try:
            return self._engine.trace_state()
        except GdbError as error:
            if "session has ended" not in str(error):
                raise
            self._engine.said("log", f"{error}\n")  # it is said only once
            return TraceState()

    def text(self, columns: int) -> str:
        """In so many columns: what does not fit is left out, the end of the place first."""
        target, trace = self._target, str(self._trace)
        room = max(columns - len(f" | {trace}"), PLACE_AT_LEAST)
        if len(target) > room:
            target = target[: room - 1] + "…"
        return f"{target} | {trace}"[:columns]

    def __str__(self) -> str:
        return f"{self._target} | {self._trace}"

    @property
    def _target(self) -> str:
        state = self._engine.state
        return self._place if self._place and state.connected and not state.running else state.word

    def _asked_place(self) -> str:
        """Where the selected hart is, which need not be where the program stopped: in the past, after a reset ..."""
        at = self._engine.query("-rvtrace-position")
        if at.get("state") not in ("live", "past"):
            return ""
        frames = self._engine.query("-stack-list-frames 0 0").get("stack", [])
        place = stop_of({"frame": frames[0]}).place if frames else "an unknown place"
        hart = f"hart {at['hart']} " if "hart" in at and self._engine.state.several else ""
        if at["state"] == "past":
            return f"{hart}in the past, {at['number']} of {at['length']}, at {place}"
        return f"{hart}stopped at {place}"
