"""Which past a history has: where the values in it come from."""

from typing import NamedTuple

from rvtrace_gdb.session.lists import HistorySource, SelectedHistory
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.support.errors import Progress, silent


class _Kept(NamedTuple):
    past: Past | None


def past_of(session: HistorySource, it: SelectedHistory, progress: Progress = silent) -> Past | None:
    """Return the values that are known in a history, the same object for the same history; None: there are none."""
    return session.cached(_Kept, it.history, lambda: _Kept(new_past(it))).past


def new_past(it: SelectedHistory) -> Past | None:
    """Return what `past_of` keeps."""
    from rvtrace_gdb.decode.tandem.decoder import tandem_of  # large, and most requests need no values
    from rvtrace_gdb.session.past.data_trace.past import DataTracePast
    from rvtrace_gdb.session.past.tandem.past import TandemPast

    tandem = tandem_of(it.history)
    if tandem is not None:
        return TandemPast(tandem, it.program)
    return DataTracePast(it.history, it.program) if it.history.accesses else None
