"""The methods of the session protocol for forks: `trace fork`, see `session.fork`.

    fork_check {context, hart, all, args, through_devices} -> {lines, forks}

    fork {context, number} -> {number, lines, moves, match, of}, as `goto`; *number*: at which, none: where gdb is
    fork_end {context} -> the same: where the fork was made

The next resumption then leads into the fork, or out of it.

*hart*: of which; with *all*, of all harts; else the context's. *args*: a RANGE as in `trace history` ("": everything).
*through_devices*: reads of devices are passed over. *forks*: `rows.fork_rows.ForkCheck`, one for each hart.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.fork.check import fork_checks
from rvtrace_gdb.session.replay.debugger import debugger_of
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.rpc.requested_harts import requested_harts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def checked_forks(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return how far forks follow the trace, see the module. Raises NoFork, RangeError, and as `Session.selected`."""
    context, selected = requested_harts(session, params, progress)
    found = fork_checks(
        session, context, params.text("args", ""), progress, through_devices=params.given("through_devices")
    )
    return {"lines": selected.lines, "forks": found}


def begin_fork(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Make a fork, into which the next resumption leads. Raises NoFork, and as `goto`."""
    debugger = debugger_of(session, params.context())
    return debugger.go_into_fork(params.optional_number("number"), progress)._asdict()


def leave_fork(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Let the next resumption lead to where the fork was made. Raises NoFork."""
    return debugger_of(session, params.context()).leave_fork()._asdict()


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {
    "fork_check": checked_forks,
    "fork": begin_fork,
    "fork_end": leave_fork,
}
