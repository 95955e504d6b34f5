"""Enabling and disabling one component: a component is left only when its registers say that it is done.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Enabling and Disabling".
"""

from collections.abc import Sequence

from rvtrace_gdb.controlregs import encoder
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.data_setup import begin_data
from rvtrace_gdb.controlregs.errors import ComponentError, SettingRefused, WasReset
from rvtrace_gdb.controlregs.trigger_setup import data_follows
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent


def begin(component: Component, *, data: bool, on: bool = True) -> list[str]:
    """Let an enabled encoder trace, *data* too; not *on*: as soon as a trigger says so. Returns a line for what does
    not begin. Raises WasReset, NoAnswer, ComponentAccess.
    """
    check_active(component)
    notes = begin_data(component, data) if on or not data_follows(component) else []
    if not on:
        return notes
    control = component.set(encoder.CONTROL, trTeInstTracing=1)
    if not encoder.CONTROL.get(control, "trTeInstTracing"):
        notes.append(f"{component.name}: tracing is not on yet (trTeInstTracing reads 0)")
    return notes


def check_active(component: Component) -> int:
    """tr??Control of a component that was set up: one that was reset meanwhile must not be woken with its old value,
    as all its other registers are undefined. Raises WasReset, NoAnswer, ComponentAccess.
    """
    control = component.block.control
    value = component.read_control()
    if not control.get(value, component.block.prefix + "Active"):
        raise WasReset(component.name, component.base, control, value)
    return value


def enable(component: Component, progress: Progress = silent) -> None:
    """Set Enable, the last setting of a component, and wait until it is in force.

    Raises WasReset, SettingRefused for one that is enabled already, and what `Component.wait` raises.
    """
    control, bit = component.block.control, component.block.prefix + "Enable"
    value = check_active(component)
    if control.get(value, bit):
        text = f"is on before it was switched on ({control.name} reads {value:#010x}): does it answer at the address of"
        raise SettingRefused(component.name, component.base, f"{text} another component as well?")
    component.set(control, **{bit: 1})
    component.wait(control, progress, **{bit: 1})


def disable(component: Component, progress: Progress = silent) -> bool:
    """Clear Enable and wait until the component has passed on all trace. False: it was found in reset, and left so."""
    control, prefix = component.block.control, component.block.prefix
    if not control.get(component.read_control(), prefix + "Active"):
        return False
    fields = {prefix + "Enable": 0}
    if component.block is encoder.ENCODER:
        fields["trTeInstTracing"] = 0
    component.set(control, **fields)
    component.wait(control, progress, **{prefix + "Enable": 0, prefix + "Empty": 1})
    return True


def take_back(enabled: Sequence[Component]) -> None:
    """Switch off again what was switched on, the last one first, after something failed. What cannot be reached any
    more cannot be helped.
    """
    for component in enabled[::-1]:
        try:
            disable(component)
        except ComponentError:
            continue
        except RvtraceError:
            return
