"""Where components of version 0 have their time from, and what of it was not granted.

Ref: see the package; tsControl: "tsActive must be set to 1 before any other fields in tsControl are programmed". On the
P550 the funnel counts and encoders are its slaves; tsType is fixed.
"""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentTimeout
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.controlregs.sifive_v0.timestamp import CONTROL, TsBranch, TsType

INTERNAL = (TsType.INTERNAL, TsType.INTERNAL_CORE)
"""Types that count a clock themselves, which can be divided."""
COUNTING = (*INTERNAL, TsType.EXTERNAL)
"""Types that have time without another unit."""


def set_encoder_time(component: Component, request: TraceRequest, clock: str = "") -> list[str]:
    """Let messages have timestamps. *clock*: the funnel that has the time. Returns what was not granted."""
    name = component.name
    if not _wake(component):
        return [f"{name} has no timestamps (tsActive stays 0)"]
    value, wanted = 0, int(request.ts_mode)  # the codes are those of trTsMode
    for kind in (int(TsType.SLAVE), wanted) if clock else (wanted,):
        value = _run(component, kind, request.ts_prescale, tsEnable=1)
        if CONTROL.get(value, "tsType") == kind:
            break
    got = CONTROL.get(value, "tsType")
    if not CONTROL.get(value, "tsEnable") or got == TsType.NONE:
        return [f"{name} has no timestamps"]
    notes = _branch_notes(component)
    if clock and got != TsType.SLAVE:
        of = f"{name} cannot share the time of {clock}, its own comes from {_type_name(got)}"
        return [*notes, f"{of}: it cannot be compared with that of other harts"]
    if not clock and got != wanted:
        notes.append(f"{name}: time comes from {_type_name(got)}, not {_type_name(wanted)}")
    return notes + _prescale_notes(name, value, request.ts_prescale, shares=bool(clock))


def set_funnel_time(component: Component, request: TraceRequest, top: str) -> tuple[bool, list[str]]:
    """Let a funnel count time, or pass on that of the funnel *top*. Returns whether it has time to give, and what was
    not granted.
    """
    if not _wake(component):
        return False, []
    is_top = top == component.name
    wanted = int(request.ts_mode) if is_top else int(TsType.SLAVE)
    value = _run(component, wanted, request.ts_prescale)
    got = CONTROL.get(value, "tsType")
    if got == TsType.NONE:
        return False, []
    if not is_top and got != TsType.SLAVE:
        return False, [f"{component.name} cannot share the time of {top} (tsType reads {got}, {_type_name(got)})"]
    if is_top and got not in COUNTING:
        return False, [f"{component.name} counts no time of its own (tsType reads {got}, {_type_name(got)})"]
    notes = []
    if got != wanted:
        notes.append(f"{component.name}: time comes from {_type_name(got)}, not {_type_name(wanted)}")
    return True, notes + (_prescale_notes(component.name, value, request.ts_prescale) if is_top else [])


def _wake(component: Component) -> bool:
    """Reset the unit, and release it from that. False: there is none, or it does not wake."""
    component.write(CONTROL, 0)
    if CONTROL.get(component.set(CONTROL, tsActive=1), "tsActive"):
        return True
    if not CONTROL.get(component.read(CONTROL), "tsWidth"):
        return False
    try:
        component.wait(CONTROL, tsActive=1)
    except ComponentTimeout:
        return False
    return True


def _run(component: Component, kind: int, prescale: int, **more: int) -> int:
    return component.set(CONTROL, tsActive=1, tsType=kind, tsReset=1, tsCount=1, tsPrescale=prescale, **more)


def _branch_notes(component: Component) -> list[str]:
    """All messages are to have a timestamp, as they have in 1.0."""
    value = component.set(CONTROL, tsBranch=TsBranch.ALL)
    got = CONTROL.get(value, "tsBranch")
    if got == TsBranch.ALL:
        return []
    which = "synchronisation" if got == TsBranch.NONE else "synchronisation, of indirect branches and of exceptions"
    return [f"{component.name} has timestamps in messages of {which} only (tsBranch reads {got})"]


def _prescale_notes(name: str, value: int, asked: int, *, shares: bool = False) -> list[str]:
    if CONTROL.get(value, "tsType") not in INTERNAL:
        cannot = asked and not shares
        return [f"{name}: time comes from {_type_name(CONTROL.get(value, 'tsType'))}, which cannot be divided"] * cannot
    got = CONTROL.get(value, "tsPrescale")
    return [] if got == asked else [f"{name}: its clock for timestamps is divided by {4**got}, not by {4**asked}"]


def _type_name(kind: int) -> str:
    return CONTROL.by_name["tsType"].value_name(kind).replace("_", " ")
