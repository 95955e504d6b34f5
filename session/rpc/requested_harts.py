"""Which harts a request without rows is about: `{context, hart, all}`."""

from dataclasses import replace

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def requested_harts(session: Session, params: Params, progress: Progress) -> tuple[Context, SelectedHistory]:
    """Return the context of *hart*, with *all* of all harts, else of the one selected; and the history selected.

    Raises as `Session.selected`.
    """
    context = params.context()
    selected = session.selected(context, progress)
    hart = params.optional_number("hart")
    return replace(context, hart=None if params.given("all") else selected.hart if hart is None else hart), selected
