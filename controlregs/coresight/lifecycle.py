"""A CoreSight component during a trace: taken over, switched on, stopped, given back.

These are what `trace_control.lifecycle` does with the components of the Trace Control Interface, in the same order of
the graph: what receives is switched on before what sends, and stopped after it.
"""

from collections.abc import Iterable
from contextlib import suppress

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import tmc
from rvtrace_gdb.controlregs.coresight.access import check_claim, give_back, take
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.links import close_funnel, close_replicator, open_funnel, open_replicator
from rvtrace_gdb.controlregs.coresight.registers import FFCR, FUNNEL, REPLICATOR, TMC
from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import ComponentError, SettingsChanged
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

__all__ = ["check_claim", "check_settings", "disable", "enable", "give_back_all", "take_over"]


def take_over(component: CoresightComponent, progress: Progress = silent) -> list[str]:
    """Claim the component and switch it off, whatever it does. Return notes for the user.

    Raises NotCoresight, ClaimedByTarget, TmcNotReady, SettingRefused, ComponentAccess.
    """
    notes = take(component)
    component.taken = True
    component.forget()
    disable(component, progress)
    if component.block is TMC:
        tmc.switch_off(component, progress)
    return notes


def enable(component: CoresightComponent, progress: Progress = silent) -> None:
    """Switch it on, as it was set up. Raises ClaimLost, TmcNotReady, SettingRefused, ComponentAccess."""
    check_claim(component)
    if component.block is FUNNEL:
        open_funnel(component, component.routes)
    elif component.block is REPLICATOR:
        open_replicator(component, component.routes)
    else:
        tmc.switch_on(component, progress)


def disable(component: CoresightComponent, progress: Progress = silent) -> bool:
    """Let nothing more through; a TMC is flushed first, and one that stores trace can then be read out. Return True.

    Raises TmcNotReady, SettingRefused, ComponentAccess.
    """
    if component.block is FUNNEL:
        close_funnel(component)
    elif component.block is REPLICATOR:
        close_replicator(component)
    elif component.is_link:
        tmc.switch_off(component, progress)
    else:
        tmc.stop(component, progress)
    return True


def check_settings(component: Component, before: TmcSettings) -> None:
    """Raise SettingsChanged if a TMC no longer stores frames. Raises ComponentAccess, too."""
    now = component.read(FFCR)
    if (now ^ before.control) & FFCR.mask("EnFt"):
        raise SettingsChanged(component.name, component.base, FFCR.name, before.control, now)


def give_back_all(components: Iterable[Component], progress: Progress = silent) -> list[str]:
    """Switch off and give back those of *components* that are CoreSight's. Return a line for each that failed.

    Raises what *progress* raises.
    """
    problems = []
    for component in components:
        if not isinstance(component, CoresightComponent) or not component.taken:
            continue
        component.taken = False
        try:
            check_claim(component)
            if component.block is TMC:
                tmc.switch_off(component, progress)
            give_back(component)
        except ComponentError as error:
            problems.append(str(error))
            with suppress(RvtraceError):  # a TMC that does not stop is no longer ours either
                give_back(component)
    return problems
