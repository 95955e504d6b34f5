"""The method of the session protocol for how a run ended: `trace explain`, see `session.questions.explain`.

    explain {context, hart, all, args} -> {lines, explanations}

*hart*: of which; with *all*, of all harts; else the context's. *args*: a RANGE as in `trace history` ("": everything).
*explanations*: `rows.explain_rows.Explanation`, one for each hart.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.rpc.requested_harts import requested_harts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def explain(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return how the run of each hart ended, see the module. Raises RangeError, and as `Session.selected`."""
    context, selected = requested_harts(session, params, progress)
    found = explanations(session, context, params.text("args", ""), progress)
    return {"lines": selected.lines, "explanations": found}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"explain": explain}
