"""Where the components have their time from, and what of it was not granted.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Timestamp Unit": in a system with funnels the top one is
the source of time (Internal System or External), and all encoders and other funnels share it.
"""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentTimeout
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.controlregs.timestamp import CONTROL, TsMode

FROM_THE_TOP = (TsMode.INTERNAL_SYSTEM, TsMode.EXTERNAL)
"""Modes in which a funnel can be the source of time. In others encoders count themselves, or time is from elsewhere."""
INTERNAL = (TsMode.INTERNAL_SYSTEM, TsMode.INTERNAL_CORE)
"""Modes in which the unit counts itself, a clock that can be divided."""


def set_encoder_time(component: Component, request: TraceRequest, clock: str = "") -> list[str]:
    """Let messages have timestamps. *clock*: the funnel that has the time. Returns what was not granted."""
    if not _wake(component):
        return [f"{component.name} has no timestamps: its timestamp unit does not leave reset (trTsActive stays 0)"]
    wanted, value = int(request.ts_mode), 0
    for mode in (int(TsMode.SHARED), wanted) if clock else (wanted,):
        value = _run(component, mode, request.ts_prescale if mode in INTERNAL else 0, trTsEnable=1)
        if CONTROL.get(value, "trTsMode") == mode:
            break
    if not CONTROL.get(value, "trTsEnable"):
        return [f"{component.name} has no timestamps"]
    got = CONTROL.get(value, "trTsMode")
    if clock and got != TsMode.SHARED:
        return [
            f"{component.name} cannot share the time of {clock}, its own comes from {_mode_name(got)}: "
            "it cannot be compared with that of other harts"
        ]
    if not clock and got != wanted:
        return [f"{component.name}: time comes from {_mode_name(got)}, not {_mode_name(wanted)}"]
    return [] if clock else _prescale_notes(component.name, value, request.ts_prescale)


def set_funnel_time(component: Component, mode: int, top: str, prescale: int = 0) -> tuple[bool, list[str]]:
    """Let a funnel count time, or pass on that of the funnel *top*, as *mode* says. *prescale*: trTsPrescale. Returns
    whether it has time to give, and what was not granted.
    """
    if not _wake(component):
        return False, [f"{component.name} has no time to give: its timestamp unit stays in reset (trTsActive reads 0)"]
    got = int(TsMode.NONE)
    for tried in (mode, *FROM_THE_TOP) if mode in FROM_THE_TOP else (mode,):
        value = _run(component, tried, prescale if tried in INTERNAL else 0)
        got = CONTROL.get(value, "trTsMode")
        if got == mode:
            return True, _prescale_notes(component.name, value, prescale)
        if got:
            break
    if mode == TsMode.SHARED and top != component.name:
        return False, [f"{component.name} cannot share the time of {top} (trTsMode reads {got}, {_mode_name(got)})"]
    if got == TsMode.NONE:
        return False, []
    return True, [f"{component.name}: time comes from {_mode_name(got)}, not {_mode_name(mode)}"]


def _run(component: Component, mode: int, prescale: int, **more: int) -> int:
    return component.set(CONTROL, trTsActive=1, trTsMode=mode, trTsReset=1, trTsCount=1, trTsPrescale=prescale, **more)


def _wake(component: Component) -> bool:
    """Release the unit from reset, which may take time. One that is not there at all reads 0, and is awake for us."""
    value = component.set(CONTROL, trTsActive=1)
    if CONTROL.get(value, "trTsActive") or not CONTROL.get(value, "trTsWidth"):
        return True
    try:
        component.wait(CONTROL, trTsActive=1)
    except ComponentTimeout:
        return False
    return True


def _prescale_notes(name: str, value: int, asked: int) -> list[str]:
    got = CONTROL.get(value, "trTsPrescale")
    mode = CONTROL.get(value, "trTsMode")
    if mode not in INTERNAL:
        return [f"{name}: time comes from {_mode_name(mode)}, which cannot be divided"] if asked else []
    if got == asked:
        return []
    return [f"{name}: its clock for timestamps is divided by {4**got}, not by {4**asked}"]


def _mode_name(mode: int) -> str:
    return CONTROL.by_name["trTsMode"].value_name(mode)
