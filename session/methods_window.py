"""The method of the session protocol for a window that is looked at again and again: what there is to show.

    glance {context, most, anew} -> {length, gaps, hart, current, unread, problem}

*most*: bytes that may be read out of the target for this, null: what is at hand has to do. *anew*: the program is
another one. Nothing that `trace history` would say is said here, and its place in the listing does not move.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.params import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress


def _glance(session: Session, params: Params, progress: Progress) -> Any:
    """What went wrong does not hide what is there.

    length   rows of the history, 0 for none; *gaps* of them say that something is missing
    current  nothing ran since the trace was read out
    unread   bytes that there are to read out, about; 0 where that was not looked at
    problem  why there is less than there should be
    """
    context, most = params.context(), params.optional_number("most")
    unread, problem = 0, None
    if most is not None:
        try:
            unread = _bring_up_to_date(session, context, most, params.given("anew"), progress)
        except Cancelled:
            raise
        except RvtraceError as error:
            problem = str(error)
    return {**_at_hand(session, context), "unread": unread, "problem": problem}


def _bring_up_to_date(session: Session, context: Context, most: int, anew: bool, progress: Progress) -> int:
    """How many bytes are left unread, because they are more than *most*."""
    known = session.at_hand(context)
    if known is not None and len(known.history) and not anew and session.is_current(context):
        return 0
    unread = session.unread(context)
    if unread > most:
        return unread
    session.harts(context, progress)
    found = session.at_hand(context)
    if found is not None and not len(found.history):
        session.selected(context, progress)  # which knows why
    return 0


def _at_hand(session: Session, context: Context) -> dict[str, Any]:
    found = session.at_hand(context)
    if found is None:
        return {"length": 0, "gaps": 0, "hart": None, "current": False}
    return {
        "length": len(found.history),
        "gaps": found.history.gaps,
        "hart": found.hart,
        "current": session.is_current(context),
    }


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {"glance": _glance}
