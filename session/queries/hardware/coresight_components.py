"""What `trace regs` and `trace info` read of CoreSight components: nothing is written, and no lock is opened."""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import registers as coresight
from rvtrace_gdb.controlregs.coresight.access import NotCoresight, identify
from rvtrace_gdb.controlregs.coresight.tmc import memory_width
from rvtrace_gdb.controlregs.errors import ComponentAccess
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.graph import CORESIGHT
from rvtrace_gdb.session.description.model import AnyComponent
from rvtrace_gdb.session.queries.hardware.component_seen import ComponentSeen
from rvtrace_gdb.session.target.link import Link


def see(link: Link, described: AnyComponent) -> ComponentSeen:
    """Read a component's state and kind. Raises the transport's errors when the link fails."""
    component = Component(link, described.base, CORESIGHT[described.kind], described.name)
    try:
        devtype = identify(component)
        control = component.read(component.block.control)
        tags = component.read(coresight.CLAIMCLR)
    except NotCoresight as error:
        return ComponentSeen(component, error.devtype, error.devtype, notes=(str(error),), passes=False)
    except ComponentAccess as error:
        return ComponentSeen(component, None, notes=(f"cannot be read: {error.cause}",))
    by_target = tags & coresight.BY_TARGET
    notes = (f"software on the target uses it (CLAIMCLR reads {tags:#x})",) if by_target else ()
    return ComponentSeen(
        component, control, devtype, notes=notes, usable=True, passes=_passes(component.block, control)
    )


def _passes(block: RegisterBlock, control: int) -> bool:
    if block is coresight.REPLICATOR:
        return control != coresight.NOTHING_PASSES
    on = coresight.FUNCTL.mask("EnS") if block is coresight.FUNNEL else coresight.CTL.mask("TraceCaptEn")
    return bool(control & on)


def built_as(tmc: Component) -> str:
    """Describe how a TMC is built: "ETR, memory of 64 bits, scatter-gather". Raises ComponentAccess."""
    devid = tmc.read(coresight.DEVID)
    kind = coresight.DEVID.by_name["CONFIGTYPE"].value_name(coresight.DEVID.get(devid, "CONFIGTYPE")).upper()
    parts = [kind, f"memory of {8 * memory_width(devid)} bits"]
    if kind == coresight.TmcType.ETR.name:
        parts.append("no scatter-gather" if coresight.DEVID.get(devid, "NOSCAT") else "scatter-gather")
    else:
        parts.append(f"{4 * coresight.RSZ.get(tmc.read(coresight.RSZ), 'RSZ')} bytes of its own")
    return ", ".join(parts)
