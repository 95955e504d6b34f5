"""Which past a history has: where the values in it come from."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rvtrace_gdb.decode.reconstruction.facts import StopState
from rvtrace_gdb.session.capture.model import Capture, Captured, CapturedSink
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.selected_history import HistorySource, SelectedHistory
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.extents import Extent

if TYPE_CHECKING:
    from rvtrace_gdb.session.past.reconstructed.facts import HartFacts

OFF = "off"
"""Nothing is reconstructed."""
Facts = Callable[[], "HartFacts | None"]
"""Returns from what values are reconstructed; None: they are not."""
StatesName = Callable[["HartFacts"], str | None]
"""Returns the name of the file in which what is reconstructed is kept, see `states_name`; None: in none."""


class PastSource(HistorySource, Protocol):
    """The session, as far as a past needs it."""

    opened: str | None
    """The name of the capture file; None: the trace is recorded here."""

    def capture(self) -> Capture: ...

    def captured_of(self, hart: int) -> Captured | None:
        """Return what the history of a hart was decoded from."""
        ...

    def live_stop(self, hart: int, rams: Sequence[Extent]) -> StopState | None:
        """Return the state of a hart that stands where its trace ends. *rams*: what may be read."""
        ...


class _Pasts(NamedTuple):
    """The pasts of a history, by what is reconstructed."""

    by_values: dict[str, Past | None]


def past_of(session: PastSource, selected: SelectedHistory, progress: Progress = silent) -> Past | None:
    """Return the values that are known in a history, the same object for the same history; None: there are none."""
    kept = session.cached(_Pasts, selected.history, lambda: _Pasts({})).by_values
    if selected.values not in kept:
        kept[selected.values] = new_past(
            selected, partial(facts_of, session, selected), partial(_states_name, session, selected)
        )
    return kept[selected.values]


def facts_of(session: PastSource, selected: SelectedHistory) -> "HartFacts | None":
    """Return from what values are reconstructed; None: the trace has them, or a debugger wrote nobody knows where."""
    from rvtrace_gdb.decode.tandem.decoder import tandem_of
    from rvtrace_gdb.session.past.halts import hides_writes
    from rvtrace_gdb.session.past.saved_facts import ends_at, known_of

    if tandem_of(selected.history) is not None:
        return None
    capture, captured = session.capture(), session.captured_of(selected.hart)
    if hides_writes(
        selected.history, [written for written in capture.written if written.hart == selected.hart], captured
    ):
        return None
    known = known_of(capture, selected, captured)
    stop = session.live_stop(selected.hart, known.machine.rams)
    ends = stop is not None and ends_at(selected.history, selected.program, stop.pc)
    return known._replace(stop=stop) if ends else known


def _states_name(session: PastSource, selected: SelectedHistory, facts: "HartFacts") -> str | None:
    from rvtrace_gdb.session.past.states_name import states_name

    capture, captured = session.capture(), session.captured_of(selected.hart)
    if session.opened is None or not isinstance(captured, CapturedSink):
        return None
    return states_name(capture, captured, selected, facts)


def new_past(
    selected: SelectedHistory,
    facts: Facts = lambda: None,
    states_name: StatesName = lambda facts: None,
) -> Past | None:
    """Return what `past_of` keeps."""
    from rvtrace_gdb.decode.tandem.decoder import tandem_of  # large, and most requests need no values
    from rvtrace_gdb.session.past.data_trace.past import DataTracePast
    from rvtrace_gdb.session.past.tandem.past import TandemPast

    tandem = tandem_of(selected.history)
    if tandem is not None:
        return TandemPast(tandem, selected.program)
    known = facts() if selected.values != OFF and len(selected.history) else None
    if known is not None:
        from rvtrace_gdb.session.past.reconstructed.kept_states import KeptStates
        from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast

        states = KeptStates(partial(states_name, known))
        return ReconstructedPast(selected.history, selected.program, known, states)
    return DataTracePast(selected.history, selected.program) if selected.history.accesses else None
