"""The method of the session protocol for how deep the stack was: `trace stack`, see `session.questions.stack`.

    stack {context, hart, all, args} -> {lines, depths}

*hart*: of which; with *all*, of all harts; else the context's. *args*: a RANGE as in `trace history` ("": everything).
*depths*: `rows.stack_rows.StackDepth`, one for each hart.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.questions.stack.depth import stack_depths
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.rpc.requested_harts import requested_harts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def depths_of_stacks(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return how deep the stacks of each hart were, see the module. Raises RangeError, and as `Session.selected`."""
    context, selected = requested_harts(session, params, progress)
    found = stack_depths(session, context, params.text("args", ""), progress)
    return {"lines": selected.lines, "depths": found}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"stack": depths_of_stacks}
