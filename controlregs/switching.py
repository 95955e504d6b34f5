"""Enabling and disabling one component: a component is left only when its registers say that it is done.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Enabling and Disabling".
"""

from controlregs import encoder
from controlregs.component import Component
from controlregs.data_setup import begin_data
from support.progress import Progress, silent


def begin(component: Component, *, data: bool) -> list[str]:
    """Let an enabled encoder trace, *data* too. Returns a line for what does not begin."""
    notes = begin_data(component, data)
    control = component.set(encoder.CONTROL, trTeInstTracing=1)
    if not encoder.CONTROL.get(control, "trTeInstTracing"):
        notes.append(f"{component.name}: tracing is not on yet (trTeInstTracing reads 0)")
    return notes


def enable(component: Component, progress: Progress = silent) -> None:
    """Set Enable, the last setting of a component, and wait until it is in force."""
    control, bit = component.block.control, component.block.prefix + "Enable"
    component.set(control, **{bit: 1})
    component.wait(control, progress, **{bit: 1})


def disable(component: Component, progress: Progress = silent) -> bool:
    """Clear Enable and wait until the component has passed on all trace. False: it was found in reset, and left so."""
    control, prefix = component.block.control, component.block.prefix
    if not component.get(control, prefix + "Active"):
        return False
    fields = {prefix + "Enable": 0}
    if component.block is encoder.ENCODER:
        fields["trTeInstTracing"] = 0
    component.set(control, **fields)
    component.wait(control, progress, **{prefix + "Enable": 0, prefix + "Empty": 1})
    return True
