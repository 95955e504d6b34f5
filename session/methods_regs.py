"""The methods of the session protocol that look at the trace hardware itself.

| method     | params                                   | result                                                      |
|------------|------------------------------------------|-------------------------------------------------------------|
| regs       | context, access, names, everything, live | {lines, csrs}; see `session.regs.Wish` and `Shown`          |
| info       | context, live                            | {lines, capture: they are of a file}; see `session.info`    |
| components | context                                  | {names}: what `regs` can be asked for, without any error    |
| choices    | context                                  | {option: words}, of `trace start`; see `session.choices`    |

everything, live: true, or null. access: how a hart's CSRs are reached, see `session.ctr.access`; null where gdb has no
target.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.session import info, regs
from rvtrace_gdb.session.choices import choices
from rvtrace_gdb.session.ctr.access_usb import resolved
from rvtrace_gdb.session.ctr.commands import let_go
from rvtrace_gdb.session.params import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.progress import Progress


def show(session: Session, params: Params, progress: Progress) -> Any:
    access = resolved(params.table("access"), params.context()) if params.given("access") else None
    wish = regs.Wish(params.texts("names"), params.given("everything"), params.given("live"), access)
    try:
        return regs.show(session, params.context(), wish, progress)._asdict()
    finally:
        let_go(session)


def topology(session: Session, params: Params, progress: Progress) -> Any:
    live = params.given("live")
    lines = info.info(session, params.context(), live=live, progress=progress)
    return {"lines": lines, "capture": regs.in_capture(session) and not live}


def components(session: Session, params: Params, progress: Progress) -> Any:
    return {"names": regs.names(session, params.context())}


def start_choices(session: Session, params: Params, progress: Progress) -> Any:
    return choices(params.context())


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {
    "regs": show,
    "info": topology,
    "components": components,
    "choices": start_choices,
}
