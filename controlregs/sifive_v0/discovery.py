"""Reset of an encoder or a funnel of version 0, and the check that it is one.

Ref: see the package; teActive "will indicate completion when the read value of this bit matches what was written".
teImpl does not say which kind of component it is; what an encoder has and a funnel has not does.
"""

from rvtrace_gdb.controlregs.blocks import major
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.discovery import NOBODY, Identity, read_stable
from rvtrace_gdb.controlregs.errors import SettingRefused, WrongComponent
from rvtrace_gdb.controlregs.sifive_v0 import encoder
from rvtrace_gdb.controlregs.sifive_v0.funnel import FUNNEL
from rvtrace_gdb.support.progress import Progress, silent

_OF_ENCODERS = encoder.CONTROL.mask("teInstruction", "teSliceFormat", "teSyncMaxBTM", "teSyncMaxInst")
"""Bits of teControl of which some cannot be 0 after a reset, and that tfControl does not have."""


def reset(component: Component, progress: Progress = silent) -> Identity:
    """Reset the component, wake it, and check what it is. All its settings are lost, Enable is 0 afterwards.

    Raises ComponentTimeout, WrongComponent, SettingRefused, ComponentAccess.
    """
    control, active = component.block.control, component.block.prefix + "Active"
    if control.get(read_stable(component, control), active):
        identify(component)  # a wrong base address may be the program's memory: look before writing
    for state in (0, 1):
        component.write(control, state)
        component.wait(control, progress, **{active: state})
    component.forget()
    return identify(component)


def identify(component: Component) -> Identity:
    """Version of an active component. Raises WrongComponent, SettingRefused, ComponentAccess."""
    name = component.block.impl.name
    impl = read_stable(component, component.block.impl)
    if impl in NOBODY:
        raise WrongComponent(component.name, component.base, impl, component.block.name, None)
    if major(impl):
        version = f"{major(impl)}.{impl >> 4 & 0xF}"
        text = f"its trace control interface is {version}, not that of before 1.0 ({name} reads {impl:#010x})"
        raise SettingRefused(component.name, component.base, f"{text}; correct `version` in the target description")
    if component.block is FUNNEL and component.read(component.block.control) & _OF_ENCODERS:
        found = encoder.ENCODER.name
        raise WrongComponent(component.name, component.base, impl, component.block.name, found)
    return Identity(impl, (0, 0))
