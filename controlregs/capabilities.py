"""What a trace component can do, found out by writing its fields and reading them back, in the user's words.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery" (set WARL fields and read them back,
with the component not enabled), "Accessing and Detecting RAM Sink Registers", trFunnelDisInput, trPibMode.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rvtrace_gdb.controlregs.abilities import ABILITIES
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.discovery import Identity, identify, read_stable, reset
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.probing import Probe
from rvtrace_gdb.controlregs.switching import check_active
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent


@dataclass(frozen=True)
class Capabilities:
    """*has*: what it can do, *lacks*: options of the document that it is without; in words, one thing each."""

    name: str
    base: int
    identity: Identity
    has: tuple[str, ...]
    lacks: tuple[str, ...]


def capabilities(component: Component, progress: Progress = silent) -> Capabilities:
    """What *component* can do. It must not be enabled; its settings are put back, and it is left in reset if it was.

    Raises SettingRefused while it is enabled, and what `reset` and `identify` raise.
    """
    return while_off(component, lambda: identify(component), lambda: reset(component, progress), _found)


def while_off(
    component: Component,
    awake: Callable[[], Identity],
    woken: Callable[[], Identity],
    found_of: Callable[[Component, Identity], Capabilities],
) -> Capabilities:
    """What *found_of* finds of a component that is off, whatever its version: who it is says *awake* if it is not in
    reset, else *woken*, after which it is put back. Raises as `capabilities`.
    """
    control, prefix = component.block.control, component.block.prefix
    now = read_stable(component, control)
    if control.get(now, prefix + "Enable") and control.get(now, prefix + "Active"):
        text = "is in use, so what it can do cannot be found out now; stop the trace first"
        raise SettingRefused(component.name, component.base, text)
    if control.get(now, prefix + "Active"):
        return found_of(component, awake())
    try:
        found = found_of(component, woken())
        component.write(control, 0)
    except RvtraceError:
        with suppress(RvtraceError):  # what went wrong is already known
            component.write(control, now)
        raise
    finally:
        component.forget()
    return found


def _found(component: Component, identity: Identity) -> Capabilities:
    try:
        with Probe(component) as probe:
            found = ABILITIES[component.block.comp_type](probe)
        check_active(component)  # or what was read may come from a component in reset, or from nobody
    finally:
        component.forget()
    return Capabilities(component.name, component.base, identity, tuple(found.has), tuple(found.lacks))
