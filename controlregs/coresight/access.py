"""What every CoreSight component needs before its settings may be written: identification, lock, claim tags.

Software on the target and debuggers share these components by their claim tags: whoever uses one sets its tag, and does
not touch one that somebody else has claimed. The lock keeps a program's stray writes away; where it is there, writes
have no effect while it is closed.

Ref: Arm CoreSight Architecture Specification (IHI 0029), management registers; coresight_claim_device and CS_UNLOCK of
Linux 6.1, drivers/hwtracing/coresight/coresight-core.c, coresight-priv.h.
"""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight.registers import (
    BY_DEBUGGER,
    BY_TARGET,
    CLAIMCLR,
    CLAIMSET,
    DEVTYPE,
    ITCTRL,
    LAR,
    LSR,
    UNLOCK,
    CoresightBlock,
    DevType,
)
from rvtrace_gdb.controlregs.errors import ComponentError, SettingRefused, place_of

_UNANSWERED = (0x0000_0000, 0xFFFF_FFFF)  # what DEVTYPE reads where nothing answers
_NAMES = {
    DevType.FUNNEL: "CoreSight funnel",
    DevType.REPLICATOR: "CoreSight replicator",
    DevType.BUFFER: "CoreSight trace buffer",
    DevType.FIFO: "CoreSight trace FIFO",
}


class NotCoresight(ComponentError):
    """Another component, or none, answers at the address. *devtype*: what DEVTYPE reads."""

    def __init__(self, component: str, base: int, devtype: int, expected: str) -> None:
        self.devtype, self.expected = devtype, expected
        name = _NAMES.get(DevType(devtype)) if devtype in list(DevType) else None
        what = f"this is a {name}, not a {expected}" if name else f"no {expected} answers here"
        advice = "correct the target description" if name else "check its power and clock, and the target description"
        super().__init__(component, base, f"{place_of(component, base)}: {what} (DEVTYPE reads {devtype:#x}); {advice}")


class ClaimedByTarget(ComponentError):
    """Software on the target uses the component. *tags*: what CLAIMCLR reads."""

    def __init__(self, component: str, base: int, tags: int) -> None:
        self.tags = tags
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: software on the target uses it (CLAIMCLR reads {tags:#x}), as Linux does"
            " while it records a trace; nothing was changed: end the trace there, then start this one again",
        )


class ClaimLost(ComponentError):
    """The claim tag that was set when the trace began is gone. *tags*: what CLAIMCLR reads."""

    def __init__(self, component: str, base: int, tags: int) -> None:
        self.tags = tags
        by = "software on the target has taken it over" if tags & BY_TARGET else "it was reset, or lost its power"
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: {by} while it was used here (CLAIMCLR reads {tags:#x}); start the trace"
            " again",
        )


def identify(component: Component) -> int:
    """Return DEVTYPE. Raises NotCoresight, ComponentAccess."""
    block = component.block
    assert isinstance(block, CoresightBlock)
    value = component.read(DEVTYPE)
    if value in _UNANSWERED or DEVTYPE.get(value, "TYPE") not in block.devtypes:
        raise NotCoresight(component.name, component.base, value, block.name)
    return value


def take(component: Component) -> list[str]:
    """Identify the component, check that nobody else uses it, open its lock and claim it. Return notes for the user.

    Raises NotCoresight, ClaimedByTarget, SettingRefused, ComponentAccess; then nothing has changed, but perhaps the
    lock.
    """
    identify(component)
    tags = component.read(CLAIMCLR)
    if tags & BY_TARGET:
        raise ClaimedByTarget(component.name, component.base, tags)
    unlock(component)
    if component.read(ITCTRL) & 1:
        component.write(ITCTRL, 0)
    notes = []
    if tags & BY_DEBUGGER:
        notes.append(f"{component.name} was claimed by a debugger, perhaps by a trace that was not ended; taken over")
    component.target.write32(component.base + CLAIMSET.offset, BY_DEBUGGER)
    tags = component.read(CLAIMCLR)
    if tags & BY_TARGET:  # it came first in between
        _release(component)
        raise ClaimedByTarget(component.name, component.base, tags)
    return notes


def unlock(component: Component) -> None:
    """Open the lock, if there is one. Raises SettingRefused, ComponentAccess."""
    status = LSR.unpack(component.read(LSR))
    if not (status["SLI"] and status["SLK"]):
        return
    component.target.write32(component.base + LAR.offset, UNLOCK)
    status = LSR.unpack(value := component.read(LSR))
    if status["SLK"]:
        text = f"stays locked after the key was written to LAR (LSR reads {value:#x}): its registers cannot be set"
        raise SettingRefused(component.name, component.base, f"{text}; is there a lock of the system in front of it?")


def check_claim(component: Component) -> None:
    """Raise ClaimLost unless the component is claimed by a debugger alone. Raises ComponentAccess, too."""
    tags = component.read(CLAIMCLR)
    if tags & BY_TARGET or not tags & BY_DEBUGGER:
        raise ClaimLost(component.name, component.base, tags)


def give_back(component: Component) -> None:
    """Clear the claim and close the lock. Raises ComponentAccess."""
    if component.read(CLAIMCLR) & BY_DEBUGGER:
        _release(component)


def _release(component: Component) -> None:
    component.target.write32(component.base + CLAIMCLR.offset, BY_DEBUGGER)
    component.target.write32(component.base + LAR.offset, 0)
    component.read(LSR)  # writes may be posted: a read makes sure that they arrived
