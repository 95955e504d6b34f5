"""Reset of a component and the check that it is what the target description says.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, sections on reset and discovery, and on versioning.
"""

from contextlib import suppress
from dataclasses import dataclass

from rvtrace_gdb.controlregs.common import VERSION, VERSION_EXPERIMENTAL, CompType
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused, UnsupportedVersion, WrongComponent
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent

NOBODY = (0x0000_0000, 0xFFFF_FFFF)  # what tr??Impl reads where nothing answers, on buses that give no error
READS_UNTIL_STABLE = 32


@dataclass(frozen=True)
class Identity:
    """What tr??Impl says. *notes*: what the user should know though it does not stop anything."""

    impl: int
    version: tuple[int, int]
    notes: tuple[str, ...] = ()


def reset(component: Component, progress: Progress = silent) -> Identity:
    """Reset the component, wake it, and check what it is. All its settings are lost, Enable is 0 afterwards.

    Raises ComponentTimeout, WrongComponent, UnsupportedVersion, SettingRefused, ComponentAccess. Something that is not
    this component then holds what it held: a wrong base address may be the program's memory.
    """
    control, active = component.block.control, component.block.prefix + "Active"
    before = read_stable(component, control)
    if control.get(before, active):
        identify(component)
    try:
        for state in (0, 1):
            component.write(control, state)
            value = component.wait(control, progress, **{active: state})
        component.forget()
        identity = identify(component)
    except (WrongComponent, UnsupportedVersion):
        with suppress(RvtraceError):  # what went wrong is already known
            component.write(control, before & ~1)
        raise
    if control.get(value, component.block.prefix + "Enable"):
        text = f"is on right after its reset ({control.name} reads {value:#010x}), so that it cannot be set up"
        raise SettingRefused(component.name, component.base, f"{text}; check the component, and the base address")
    return identity


def identify(component: Component) -> Identity:
    """Version and kind of an active component. Raises WrongComponent, UnsupportedVersion, ComponentAccess."""
    register, prefix = component.block.impl, component.block.prefix
    impl = read_stable(component, register)
    version = register.get(impl, prefix + "VerMajor"), register.get(impl, prefix + "VerMinor")
    if impl in NOBODY:
        raise WrongComponent(component.name, component.base, impl, component.block.name, None)
    if version[0] != VERSION[0]:
        raise UnsupportedVersion(component.name, component.base, impl, version, VERSION)
    found = register.get(impl, prefix + "CompType")
    if found != component.block.comp_type:
        raise WrongComponent(component.name, component.base, impl, component.block.name, _type_name(found))
    return Identity(impl, version, _version_notes(component, version, impl))


def read_stable(component: Component, register: Register) -> int:
    """The register, read until two reads agree.

    OpenOCD 0.12 answers first reads over a slow system bus with the word read before, until it has learned the delay.
    """
    value = component.read(register)
    for _ in range(READS_UNTIL_STABLE):
        previous, value = value, component.read(register)
        if value == previous:
            break
    return value


def _type_name(code: int) -> str:
    names = {int(kind): kind.name.lower().replace("_", " ") for kind in CompType}
    return names.get(code, f"component of unknown type {code:#x}")


def _version_notes(component: Component, version: tuple[int, int], impl: int) -> tuple[str, ...]:
    if version[1] <= VERSION[1]:
        return ()
    kind = "experimental" if version[1] == VERSION_EXPERIMENTAL else "a newer one"
    return (
        f"{component.name} at {component.base:#x}: trace control interface {version[0]}.{version[1]} is {kind}, "
        f"used as {VERSION[0]}.{VERSION[1]} (tr??Impl reads {impl:#010x})",
    )
