"""How control transfers were recorded, as read back from a hart's registers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CtrInForce:
    """One hart's CTR when its entries were read.

    name        "ctr0", for messages
    version     "1.0" or "0.1.4", a key of `controlregs.ctr.versions.VERSIONS`
    xlen        width of the CSRs
    depth       entries there are
    control     mctrctl (1.0) or mctrcontrol (0.1.4), 64 bits; sctr*, without what that hides, where M mode is closed
    vs_control  vsctrctl or vsctrcontrol, 0 where there is none
    status      sctrstatus, or mctrstatus
    pc          where the hart stood, None where not known
    privilege   its mode then (bits 1:0; bit 2: V), None where not known
    misa        which modes it has, None where not known
    """

    name: str
    version: str
    xlen: int
    depth: int
    control: int
    vs_control: int
    status: int
    pc: int | None = None
    privilege: int | None = None
    misa: int | None = None
