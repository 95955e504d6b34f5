"""The methods of the session protocol for Control Transfer Records.

| method     | params                      | result                                                             |
|------------|-----------------------------|--------------------------------------------------------------------|
| ctr_start  | context, access, options    | {lines}; options: see `session.ctr.request`                        |
| ctr_stop   | context, access             | {lines}                                                            |
| ctr_connected | access                   | {}; gdb's connection is another one                                |
| ctr_clear  | context, access             | {lines}                                                            |
| ctr_status | context, access             | {lines}                                                            |
| ctr_show   | context, access, args, size | as history, and {now}: what ran since the newest record            |
| ctr_rows   | begin, end                  | rows of `session.ctr.showing`; row 1 is entry 0, the youngest      |
| ctr_stack  | context, access             | {lines, ras, full, frames}: [{pc, call, to}, ...], youngest first  |

access: how the hart's CSRs are reached, see `session.ctr.access`; null where gdb has no target.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.session.ctr import commands, showing
from rvtrace_gdb.session.ctr.access_errors import NoWay
from rvtrace_gdb.session.ctr.access_usb import resolved
from rvtrace_gdb.session.params import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.told import answer
from rvtrace_gdb.support.progress import Progress

Method = Callable[[Session, Params, Progress], Any]
_NO_TARGET = "Nothing to record: gdb is not connected to a target. `trace connect` does that."


def _access(params: Params) -> Mapping[str, Any] | None:
    return resolved(params.table("access"), params.context()) if params.given("access") else None


def start(session: Session, params: Params, progress: Progress) -> Any:
    way = _access(params)
    if way is None:
        raise NoWay(_NO_TARGET)
    return answer(commands.start(session, params.context(), way, params.table("options"), progress))


def stop(session: Session, params: Params, progress: Progress) -> Any:
    return answer(commands.stop(session, _access(params), progress))


def clear(session: Session, params: Params, progress: Progress) -> Any:
    return answer(commands.clear(session, params.context(), _access(params), progress))


def status(session: Session, params: Params, progress: Progress) -> Any:
    return answer(commands.status(session, params.context(), _access(params), progress))


def show(session: Session, params: Params, progress: Progress) -> Any:
    args, size = params.text("args", ""), params.size()
    return showing.show(session, params.context(), _access(params), args, size, progress)


def rows(session: Session, params: Params, progress: Progress) -> Any:
    begin, end = params.page("ctr_rows")
    return showing.rows(session, begin, end)


def stack(session: Session, params: Params, progress: Progress) -> Any:
    return showing.stack(session, params.context(), _access(params), progress)



def connected(session: Session, params: Params, progress: Progress) -> Any:
    commands.connected(session, params.table("access") if params.given("access") else None)
    return {}


def _letting_go(method: Method) -> Method:
    """*method*, and afterwards others may use the adapter."""

    def run(session: Session, params: Params, progress: Progress) -> Any:
        try:
            return method(session, params, progress)
        finally:
            commands.let_go(session)

    return run


_METHODS: Mapping[str, Method] = {
    "ctr_start": start,
    "ctr_stop": stop,
    "ctr_connected": connected,
    "ctr_clear": clear,
    "ctr_status": status,
    "ctr_show": show,
    "ctr_rows": rows,
    "ctr_stack": stack,
}
METHODS: Mapping[str, Method] = {name: _letting_go(method) for name, method in _METHODS.items()}
