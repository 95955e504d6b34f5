"""What encoders do differently, as named switches.

Source: the encoders themselves, as published: bluespec/Flute, bluespec/Piccolo, bluespec/Toooba (`TV_Encode.bsv`,
`TV_Taps.bsv`, `Trace_Data2_to_Trace_Data.bsv`) and the registers they tell (`CSR_MSTATUS.bsv`, `CSR_MIE.bsv`,
`CSR_MIP.bsv`; of Toooba `CsrFile.bsv`), the Chisel encoder for Rocket, a public reader of two-address traces.
"""

from dataclasses import dataclass, replace
from enum import Enum

DPC = 0x7B1
_SSTATUS = 0xD_E133  # MXR, SUM, XS, FS, SPP, SPIE, UPIE, SIE, UIE: mstatus of these cores has VS all the same


class AmoData(Enum):
    """What the memory store data of an atomic operation is."""

    RESULT = "what it writes"
    OPERAND = "its operand, rs2"
    UNTOLD = "not documented: what it writes is not known"


@dataclass(frozen=True)
class Dialect:
    """One kind of encoder.

    eaddr_is_xlen     effective addresses have XLEN bits, whatever MLEN is
    init_fpr_is_xlen  in a state initialization a floating-point register has XLEN bits (the debug module wrote it)
    pcs               addresses in the additional state of the pc: with 2, the instruction's own comes first
    pc_register       the pc is sent as a full register with this number, -1: it is not
    xret_pc_is_own    the pc of mret and sret is the instruction's own address, not the one it returns to
    amo_data          see `AmoData`
    untraced_below    groups that would tell a pc below this address are dropped; 0: none are
    sstatus           the bits of mstatus below bit 32 but SD that sstatus has; 0: those of the specification
    sie               the bits of mie and mip that sie and sip have, whatever mideleg is; 0: those that mideleg has
    """

    name: str
    eaddr_is_xlen: bool = False
    init_fpr_is_xlen: bool = False
    pcs: int = 1
    pc_register: int = -1
    xret_pc_is_own: bool = False
    amo_data: AmoData = AmoData.RESULT
    untraced_below: int = 0
    sstatus: int = 0
    sie: int = 0


SPECIFICATION = Dialect("specification")
FLUTE = Dialect("flute", eaddr_is_xlen=True, amo_data=AmoData.OPERAND, sstatus=_SSTATUS, sie=0x333)
PICCOLO = replace(FLUTE, name="piccolo", init_fpr_is_xlen=True)
PICCOLO_2018 = replace(PICCOLO, name="piccolo-2018", pc_register=DPC)
TOOOBA = replace(PICCOLO, name="toooba", xret_pc_is_own=True, sie=0x222)
ROCKET = Dialect("rocket", eaddr_is_xlen=True, amo_data=AmoData.UNTOLD, untraced_below=0x0800_0000)
TWO_PC = Dialect("two-pc", eaddr_is_xlen=True, pcs=2, amo_data=AmoData.UNTOLD)

DIALECTS = {dialect.name: dialect for dialect in (SPECIFICATION, FLUTE, PICCOLO, PICCOLO_2018, TOOOBA, ROCKET, TWO_PC)}
"""By name."""
