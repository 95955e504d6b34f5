"""Enabling and disabling encoders and funnels of version 0: one is left only when its registers say that it is done.

Ref: see the package; the scripts clear teTracing before teEnable, and wait for teEmpty after that.
"""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.fields import Access
from rvtrace_gdb.controlregs.sifive_v0.encoder import CONTROL, ENCODER
from rvtrace_gdb.controlregs.switching import check_active
from rvtrace_gdb.support.progress import Progress, silent


def update(component: Component, **fields: int) -> int:
    """Write these fields of teControl or tfControl, the others as last configured; returns the value then in force.

    Unless it is named, teStallOrOverflow is written as it reads: 0 would clear it, and where the field is an ordinary
    one (P550: "RW") 1 would set it. teSinkError is written 0, which changes nothing.
    """
    control = component.block.control
    flags = [n for n, field in control.by_name.items() if field.access is Access.RW0C and n not in fields]
    if flags:
        now = component.read(control)
        fields = {**{name: control.get(now, name) for name in flags}, **fields}
    return component.set(control, **fields)


def enable(component: Component, progress: Progress = silent) -> None:
    """Set Enable, which forgets what was lost and refused before, and wait until it is in force.

    Raises WasReset, and what `Component.wait` raises.
    """
    control, prefix = component.block.control, component.block.prefix
    check_active(component)
    flags = {prefix + "SinkError": 1}
    if component.block is ENCODER:
        flags["teStallOrOverflow"] = 0
    component.set(control, **{prefix + "Enable": 1}, **flags)
    component.wait(control, progress, **{prefix + "Enable": 1})


def begin(component: Component) -> list[str]:
    """Let an enabled encoder trace. Returns a line if that does not begin. Raises WasReset."""
    check_active(component)
    if CONTROL.get(update(component, teTracing=1), "teTracing"):
        return []
    return [f"{component.name}: tracing is not on yet (teTracing reads 0)"]


def disable(component: Component, progress: Progress = silent) -> bool:
    """Clear Enable and wait until all trace was passed on. False: it was found in reset, and left so."""
    control, prefix = component.block.control, component.block.prefix
    if not control.get(component.read_control(), prefix + "Active"):
        return False
    if component.block is ENCODER:
        update(component, teTracing=0)
    update(component, **{prefix + "Enable": 0})
    component.wait(control, progress, **{prefix + "Enable": 0, prefix + "Empty": 1})
    return True
