"""What encoders do differently, as named switches.

Source: the encoders themselves, as published: bluespec/Flute, bluespec/Piccolo, bluespec/Toooba (`TV_Encode.bsv`,
`TV_Taps.bsv`, `Trace_Data2_to_Trace_Data.bsv`), the Chisel encoder for Rocket, a public reader of two-address traces.
"""

from dataclasses import dataclass
from enum import Enum

DPC = 0x7B1


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
    """

    name: str
    eaddr_is_xlen: bool = False
    init_fpr_is_xlen: bool = False
    pcs: int = 1
    pc_register: int = -1
    xret_pc_is_own: bool = False
    amo_data: AmoData = AmoData.RESULT
    untraced_below: int = 0


SPECIFICATION = Dialect("specification")
FLUTE = Dialect("flute", eaddr_is_xlen=True, amo_data=AmoData.OPERAND)
PICCOLO = Dialect("piccolo", eaddr_is_xlen=True, init_fpr_is_xlen=True, amo_data=AmoData.OPERAND)
PICCOLO_2018 = Dialect(
    "piccolo-2018", eaddr_is_xlen=True, init_fpr_is_xlen=True, pc_register=DPC, amo_data=AmoData.OPERAND
)  # fmt: skip
TOOOBA = Dialect("toooba", eaddr_is_xlen=True, init_fpr_is_xlen=True, xret_pc_is_own=True, amo_data=AmoData.OPERAND)
ROCKET = Dialect("rocket", eaddr_is_xlen=True, amo_data=AmoData.UNTOLD, untraced_below=0x0800_0000)
TWO_PC = Dialect("two-pc", eaddr_is_xlen=True, pcs=2, amo_data=AmoData.UNTOLD)

DIALECTS = {dialect.name: dialect for dialect in (SPECIFICATION, FLUTE, PICCOLO, PICCOLO_2018, TOOOBA, ROCKET, TWO_PC)}
"""By name."""
