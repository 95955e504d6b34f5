"""The methods of the session protocol for a target that is reached over USB, without a debugger's connection.

| method     | params                      | result                                                                   |
|------------|-----------------------------|--------------------------------------------------------------------------|
| usb        | context                     | {usb}: the adapter in words; null: the description has no table [usb]    |
| usb_harts  | context                     | {lines}: the debug module, and the state of each hart                    |
| usb_halt   | context, hart               | {lines}: the state of each hart afterwards; hart: null: all              |
| usb_resume | context, hart               | as usb_halt                                                              |
| usb_step   | context, hart               | as usb_halt; null: the context's, else hart 0                            |
| usb_reg    | context, hart, names        | {lines}: registers; names: "mepc", "a0=5": written; none: pc and x1-x31  |
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.ctr.access_errors import NoUsbTable
from rvtrace_gdb.session.description import DescriptionError, Usb
from rvtrace_gdb.session.params import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.usb_bench import HartState, bench, hart_lines, register_lines
from rvtrace_gdb.support.progress import Progress

Method = Callable[[Session, Params, Progress], Any]


def _usb(params: Params) -> Usb:
    """Raises DescriptionError, NoUsbTable."""
    description = params.context().description(os.environ)
    if description.usb is None:
        raise NoUsbTable(description.file or "the target description")
    return description.usb


def which(session: Session, params: Params, progress: Progress) -> Any:
    try:
        usb = params.context().description(os.environ).usb
    except DescriptionError:
        usb = None
    return {"usb": None if usb is None else str(usb)}


def harts(session: Session, params: Params, progress: Progress) -> Any:
    with bench(_usb(params)) as it:
        return {"lines": [it.described(), *hart_lines(it.harts())]}


def halt(session: Session, params: Params, progress: Progress) -> Any:
    with bench(_usb(params)) as it:
        return _states(it.halt(params.optional_number("hart")))


def resume(session: Session, params: Params, progress: Progress) -> Any:
    session.check_present("trace usb resume")
    session.changed()
    with bench(_usb(params)) as it:
        return _states(it.resume(params.optional_number("hart")))


def step(session: Session, params: Params, progress: Progress) -> Any:
    session.check_present("trace usb step")
    session.changed()
    with bench(_usb(params)) as it:
        return _states(it.step(_hart(params)))


def registers(session: Session, params: Params, progress: Progress) -> Any:
    with bench(_usb(params)) as it:
        return {"lines": register_lines(it.registers(_hart(params), params.texts("names")))}


def _hart(params: Params) -> int:
    """The one that is named, else the context's."""
    if params.given("hart"):
        return params.number("hart")
    context: Context = params.context()
    found = context.thread_hart if context.hart is None else context.hart
    return 0 if found is None else found


def _states(found: list[HartState]) -> Any:
    return {"lines": hart_lines(found)}


METHODS: Mapping[str, Method] = {
    "usb": which,
    "usb_harts": harts,
    "usb_halt": halt,
    "usb_resume": resume,
    "usb_step": step,
    "usb_reg": registers,
}
