"""Captures of other traces for `rvtrace tandem`: what is known of the values in them, as a tandem trace."""


from rvtrace_gdb.console.options.tandem import TandemRequest
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.logs.tandem import known_as_tandem
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def known_of(capture: Capture, request: TandemRequest, progress: Progress) -> tuple[Capture, list[str]]:
    """Return what is known of the values of a hart as a capture with a tandem trace, and what is to say about that.

    Raises NoValues, and as `Session.open_capture` and `Session.selected` do.
    """
    session, name = Session(), request.name
    session.open_capture(capture, name, request.programs.only())
    known = known_as_tandem(session, session.selected(Context(hart=request.hart), progress), name, progress)
    note = "its values are reconstructed from what ran and from what was known where the trace begins, or ends"
    return known, [f"note: {note}"]
