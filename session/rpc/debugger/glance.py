"""The method of the session protocol for a window that is refreshed often: how much there is to show.

| method | params              | result                                         |
|--------|---------------------|------------------------------------------------|
| glance | context, most, anew | {length, gaps, hart, current, unread, problem} |

It does not count lines as reported to the user. *most*: how many bytes may be read out of the target for this, null:
nothing is read out. *anew*: the program has changed.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError


def _glance(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return how much there is to show. An error does not hide what was read before.

    length   rows of the history, 0 for none
    gaps     how many of them are gaps
    current  nothing ran since the trace was read out
    unread   about how many bytes have not been read out; 0 if this was not determined
    problem  the error because of which something is missing
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
    """Read the trace out and decode it, unless that takes more than *most* bytes: return their number then, else 0."""
    known = session.last_selected(context)
    if known is not None and len(known.history) and not anew and session.is_current(context):
        return 0
    unread = session.unread(context)
    if unread > most:
        return unread
    session.harts(context, progress)
    found = session.last_selected(context)
    if found is not None and not len(found.history):
        session.selected(context, progress)  # raises the reason
    return 0


def _at_hand(session: Session, context: Context) -> JsonMessage:
    found = session.last_selected(context)
    if found is None:
        return {"length": 0, "gaps": 0, "hart": None, "current": False}
    return {
        "length": len(found.history),
        "gaps": found.history.gaps,
        "hart": found.hart,
        "current": session.is_current(context),
    }


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"glance": _glance}
