"""The histories of the harts that a question without rows is about: of all of them, or of one."""

from dataclasses import replace

from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.lists.pages import RangeError
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def selected_harts(session: Session, context: Context, args: str, progress: Progress) -> list[SelectedHistory]:
    """Return the harts that ran, or the one that *context* asks for. *args*: a RANGE of the history of one, "" for all.

    Raises RangeError for a RANGE and several harts, and as `Session.selected`.
    """
    harts = [context.hart] if context.hart is not None else sorted(session.harts(context, progress).harts.histories)
    selected = [session.selected_or_empty(replace(context, hart=hart), progress) for hart in harts]
    shown = [it for it in selected if len(it.history)] or [session.selected(context, progress)]
    if args and len(shown) > 1:
        there = harts_text([it.hart for it in shown])
        raise RangeError(f"a RANGE has the numbers of one hart, and there are {there}: say which one")
    return shown
