"""Setting up an encoder for triggers: what switches its tracing on and off while the program runs.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Trace Encoder Triggers", trTeInstTrigEnable,
trTeDataTrigEnable; "Enabling and Disabling": either tracing is set on by hand, or triggers start it.
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder import (
    CONTROL,
    DATA_CONTROL,
    TRIG_DBG_CONTROL,
    TRIG_EXT_IN_CONTROL,
    TRIG_EXT_OUT_CONTROL,
    TrigAction,
)
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.fields import Register

EXTERNAL = 8
"""Inputs, and outputs, that an encoder can have."""
STARTS, STOPS = 1, 2
"""What an output can tell: bits of trTeTrigExtOutEvent."""


@dataclass(frozen=True)
class Triggers:
    """Addresses at which tracing goes on, goes off, or the place is marked: before the instruction there.

    *control*: what trTeTrigDbgControl, which is the vendor's, must hold; None: 0, as the document wants it.
    *inputs*: (number, what happens when that external trigger fires). *outputs*: (number, STARTS, STOPS or both).
    """

    on: tuple[int, ...] = ()
    off: tuple[int, ...] = ()
    notify: tuple[int, ...] = ()
    control: int | None = None
    inputs: tuple[tuple[int, TrigAction], ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()

    @property
    def waits(self) -> bool:
        """Whether tracing is off until one of them switches it on."""
        return bool(self.on or any(action == TrigAction.TRACE_ON for _, action in self.inputs))

    @property
    def switches(self) -> bool:
        """Whether any of them switches the trace."""
        return bool(self.waits or self.off or any(action == TrigAction.TRACE_OFF for _, action in self.inputs))


def configure_triggers(component: Component, wanted: Triggers | None, *, data: bool = False) -> list[str]:
    """Let the encoder, active and not enabled, follow triggers; returns lines that say what they do.

    *data*: loads and stores are traced, too. Raises SettingRefused, and ComponentAccess.
    """
    if wanted is None:
        return []
    if wanted.control is not None:
        _set_vendor_control(component, wanted.control)
    _set_external(component, TRIG_EXT_IN_CONTROL, "trTeTrigExtInAction", "input", wanted.inputs)
    _set_external(component, TRIG_EXT_OUT_CONTROL, "trTeTrigExtOutEvent", "output", wanted.outputs)
    if not wanted.switches:
        return _described(component.name, wanted)
    if not CONTROL.get(component.set(CONTROL, trTeInstTrigEnable=1), "trTeInstTrigEnable"):
        text = "does not take trigger actions (trTeInstTrigEnable stays 0): trace without triggers, or -range a part"
        raise SettingRefused(component.name, component.base, text)
    return _described(component.name, wanted) + (_follow_with_data(component) if data else [])


def _set_vendor_control(component: Component, value: int) -> None:
    got = component.write(TRIG_DBG_CONTROL, value)
    if got != value:
        text = f"does not hold {value:#x} in {TRIG_DBG_CONTROL.name} (it reads {got:#x})"
        raise SettingRefused(component.name, component.base, text)


def _set_external(
    component: Component, register: Register, field: str, what: str, wanted: tuple[tuple[int, int], ...]
) -> None:
    if not wanted:
        return
    fields = {f"{field}{number}": value for number, value in wanted}
    got = component.write(register, register.pack(**fields))
    for number, value in wanted:
        if (held := register.get(got, f"{field}{number}")) != value:
            text = f"cannot use trigger {what} {number} for this ({field}{number} reads {held}, not {value})"
            raise SettingRefused(component.name, component.base, text)


def _follow_with_data(component: Component) -> list[str]:
    value = component.set(DATA_CONTROL, trTeDataTrigEnable=1)
    if DATA_CONTROL.get(value, "trTeDataTrigEnable") or not DATA_CONTROL.get(value, "trTeDataImplemented"):
        return []
    return [f"{component.name}: triggers do not switch data trace (trTeDataTrigEnable stays 0), which is always on"]


def _described(name: str, wanted: Triggers) -> list[str]:
    said = {"begins to trace at": wanted.on, "ends at": wanted.off, "marks": wanted.notify}
    pieces = [f"{what} {' and '.join(f'{place:#x}' for place in places)}" for what, places in said.items() if places]
    pieces += [f"trigger input {n}: {action.name.lower().replace('_', '-')}" for n, action in wanted.inputs]
    return [f"{name} {', '.join(pieces)}"] if pieces else []


def is_switched_off(component: Component) -> bool:
    """Whether it is a trigger, or none yet, that keeps an enabled encoder from tracing."""
    now = CONTROL.unpack(component.read_control())
    return bool(now["trTeActive"] and now["trTeInstTrigEnable"] and not now["trTeInstTracing"])


def data_follows(component: Component) -> bool:
    """Whether triggers switch data trace, too."""
    return bool(component.get(DATA_CONTROL, "trTeDataTrigEnable"))
