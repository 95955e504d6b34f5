"""Which CoreSight component is at an address that no description names: by its identification registers, which are
read alone. They can be read whatever the component does, and nothing is written.

Ref: Arm CoreSight Architecture Specification (IHI 0029), "Component Identification Registers", DEVTYPE, DEVID.
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.coresight.registers import DEVID, DEVTYPE, DevType, TmcType
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.support.errors import RvtraceError

_CIDR0 = 0xFF0
_CORESIGHT = (0x0D, 0x90, 0x05, 0xB1)
"""CIDR0 to CIDR3 of a component of class 9, a CoreSight component."""
KINDS = {
    DevType.FUNNEL: "coresight_funnel",
    DevType.REPLICATOR: "coresight_replicator",
    DevType.BUFFER: "coresight_tmc",
    DevType.FIFO: "coresight_tmc",
}
"""The kinds of components that rvtrace knows, as target descriptions name them."""


@dataclass(frozen=True)
class FoundCoresight:
    """A CoreSight component at *base*. *kind*: "" of one that rvtrace does not know. *built_as*: of a TMC."""

    base: int
    devtype: int
    kind: str = ""
    built_as: TmcType | None = None


def coresight_at(target: Target, base: int) -> FoundCoresight | None:
    """Return the component at *base*, None if there is none. Raises the transport's errors if the target is lost."""
    try:
        if any(target.read32(base + _CIDR0 + 4 * n) & 0xFF != byte for n, byte in enumerate(_CORESIGHT)):
            return None
        devtype = DEVTYPE.get(target.read32(base + DEVTYPE.offset), "TYPE")
        kind = KINDS.get(DevType(devtype), "") if devtype in list(DevType) else ""
        if kind != "coresight_tmc":
            return FoundCoresight(base, devtype, kind)
        built_as = DEVID.get(target.read32(base + DEVID.offset), "CONFIGTYPE")
        return FoundCoresight(base, devtype, kind, TmcType(built_as)) if built_as in list(TmcType) else None
    except RvtraceError as error:
        if getattr(error, "address", None) is None:
            raise
        return None
