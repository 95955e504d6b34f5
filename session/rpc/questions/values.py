"""The method of the session protocol for how much is known of registers and memory in the past: `trace values`.

    values {context, at} -> {lines, row}

*at*: the number of the instruction where the question is asked, null: where the selected hart is in the past, else the
end of the trace. *row*: `answers.ValuesRow`. A debugger in the past uses the settings of this context from then on.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.rows.answers import ValuesRow
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.queries.known_values import known_values
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def values(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return how much is known, see the module. Raises as `Session.history`."""
    context = params.context()
    if isinstance(session.debugger, ProxyDebugger):
        session.debugger.context = context
    it = session.selected(context, progress)
    at = params.optional_number("at") or session.number_of_selected_hart(context)
    return {"lines": it.lines, "row": row_at(session, it, at, progress)}


def row_at(session: Session, selected: SelectedHistory, at: int | None, progress: Progress) -> ValuesRow:
    """Return how much is known; *at*: the number of the instruction that `here` is about, None: the end."""
    position = len(selected.history) if at is None else min(max(at - 1, 0), len(selected.history))
    past = past_of(session, selected, progress)
    return known_values(selected, past, session.capture(), position, progress)


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"values": values}
