"""The method of the session protocol for the console log, see `session.queries.itc`.

    itc {context, hart, channel} -> {lines, several, rows}

*hart*: null: all; *channel*: null: all. *rows*: `rows.itc_rows.ItcRow`; *several*: whether they may be of several
harts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rvtrace_gdb.session.queries.itc import console_log
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def itc(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the log, see the module. Raises NoTrace, and as `Session.harts`."""
    hart = params.optional_number("hart")
    context = replace(params.context(), hart=hart)
    decoded = session.harts(context, progress)
    rows = console_log(session, context, params.optional_number("channel"), progress)
    several = hart is None and len(decoded.harts.histories) > 1
    return {"lines": session.warnings(), "several": several, "rows": rows}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"itc": itc}
