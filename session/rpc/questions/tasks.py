"""The method of the session protocol for which tasks ran: `trace tasks`, see `session.tasks`.

    tasks {context, hart, all, args, switches} -> {lines, answer}

*hart*: of which; with *all*, of all harts; else the context's. *args*: a RANGE as in `trace history` ("": everything).
*switches*: also where they switched. *answer*: `rows.task_rows.TasksAnswer`.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.rpc.requested_harts import requested_harts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.answer import tasks_answer
from rvtrace_gdb.support.errors import Progress


def tasks(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return which tasks ran, see the module. Raises RangeError, NoTasks, BadTaskSystem, and as `Session.selected`."""
    context, selected = requested_harts(session, params, progress)
    found = tasks_answer(session, context, params.text("args", ""), progress, switches=params.given("switches"))
    return {"lines": selected.lines, "answer": found}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"tasks": tasks}
