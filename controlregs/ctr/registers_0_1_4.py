"""CSRs of the draft, except those that give access to the entries (`entries`).

Ref: RISC-V Control Transfer Records (Smctr/Ssctr)
Version: draft 0.1.4, 2023-09-15
Section: 2, CSRs; 4, State Enable Access Control
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.ctr.entries import TransferType, filter_fields, flag_field
from rvtrace_gdb.controlregs.fields import Csr, Field, FieldAccess, reserved


class DraftDepth(IntEnum):
    """Codes of DEPTH. A hart supports consecutive ones; bits of the field may be hard-wired."""

    ENTRIES_16 = 0b0000
    ENTRIES_32 = 0b0001
    ENTRIES_64 = 0b0011
    ENTRIES_128 = 0b0111
    ENTRIES_256 = 0b1111


FILTERS = {
    TransferType.EXCEPTION: "EXCINH",
    TransferType.INTERRUPT: "INTRINH",
    TransferType.TRAP_RETURN: "TRETINH",
    TransferType.NOT_TAKEN_BRANCH: "NTBREN",
    TransferType.TAKEN_BRANCH: "TKBRINH",
    TransferType.INDIRECT_CALL: "INDCALLINH",
    TransferType.DIRECT_CALL: "DIRCALLINH",
    TransferType.INDIRECT_JUMP: "INDJUMPINH",
    TransferType.DIRECT_JUMP: "DIRJUMPINH",
    TransferType.COROUTINE_SWAP: "CORSWAPINH",
    TransferType.FUNCTION_RETURN: "RETINH",
    TransferType.OTHER_INDIRECT_JUMP: "INDOJMPINH",
    TransferType.OTHER_DIRECT_JUMP: "DIROJMPINH",
}
CLR = Field("CLR", 1, FieldAccess.W1, 0, "zeroes all entries, whatever the depth, and mctrstatus; reads 0")
AFTER_TRAPS = (
    flag_field("RASEMU", "keep a stack of calls (RAS emulation)"),
    flag_field("BPFRZ", "set FROZEN on a breakpoint exception"),
    flag_field("LCOFIFRZ", "set FROZEN on a local counter overflow interrupt"),
    reserved(3),
)
DEPTH = Field("DEPTH", 4, doc="entries of the array", values=DraftDepth)
ETEN = flag_field("ETEN", "record traps from an enabled to a disabled mode, where xTE allows")
HIGH = (*filter_fields(FILTERS, ETEN), reserved(4))  # 63:60 are for custom extensions

MCTRCONTROL = Csr("mctrcontrol", 0x381, "control while V=0, as M mode sees it", (
    flag_field("M", "record in M mode"),
    flag_field("S", "record in S mode"),
    flag_field("U", "record in U mode"),
    reserved(4),
    CLR,
    flag_field("MTE", "with ETEN: record traps to M mode though M=0"),
    flag_field("STE", "with ETEN: record traps to S mode though S=0"),
    *AFTER_TRAPS,
    DEPTH,
    reserved(12),
    *HIGH,
), wide=True)
SCTRCONTROL = Csr("sctrcontrol", 0x181, "control, as S mode sees it: mctrcontrol without M and MTE, which read 0", (
    reserved(1),
    flag_field("S", "record in S mode"),
    flag_field("U", "record in U mode"),
    reserved(4),
    CLR,
    reserved(1),
    flag_field("STE", "with ETEN: record traps to S mode though S=0"),
    *AFTER_TRAPS,
    DEPTH,
    reserved(12),
    *HIGH,
), wide=True)
VSCTRCONTROL = Csr("vsctrcontrol", 0x281, "control while V=1; with the H extension", (
    reserved(1),
    flag_field("VS", "record in VS mode"),
    flag_field("VU", "record in VU mode"),
    reserved(4),
    Field("CLR", 1, FieldAccess.W1, 0, "as in mctrcontrol, but only while V=1"),
    reserved(1),
    flag_field("VSTE", "with ETEN: record traps to VS mode though VS=0"),
    *AFTER_TRAPS,
    Field("DEPTH", 4, FieldAccess.RO, doc="mctrcontrol.DEPTH", values=DraftDepth),
    reserved(12),
    *HIGH,
), wide=True)


def upper(name: str, number: int, of: Csr) -> Csr:
    """Return the CSR with bits 63:32, for RV32."""
    return Csr(name, number, f"{of.name}, bits 63:32; on RV32 only", HIGH)


MCTRCONTROLH = upper("mctrcontrolh", 0x382, MCTRCONTROL)
SCTRCONTROLH = upper("sctrcontrolh", 0x182, SCTRCONTROL)
VSCTRCONTROLH = upper("vsctrcontrolh", 0x282, VSCTRCONTROL)

STATUS_FIELDS = (
    Field("WRPTR", 8, doc="entry that is written next; only the bits that depth - 1 needs"),
    reserved(6),
    flag_field("WRAP", "WRPTR went from depth - 1 to 0; cleared when it goes back, and by CLR"),
    flag_field("FROZEN", "nothing is recorded; set on what BPFRZ and LCOFIFRZ say, and by software"),
    reserved(16),
)
MCTRSTATUS = Csr("mctrstatus", 0x383, "status, which the hart updates while it records", STATUS_FIELDS)
SCTRSTATUS = Csr("sctrstatus", 0x183, "mctrstatus, for S and VS mode", STATUS_FIELDS)
REGISTERS = (
    SCTRCONTROL,
    SCTRCONTROLH,
    SCTRSTATUS,
    VSCTRCONTROL,
    VSCTRCONTROLH,
    MCTRCONTROL,
    MCTRCONTROLH,
    MCTRSTATUS,
)
# 5.2.1: (source, target) -> whose xTE must be 1, with ETEN
EXTERNAL_TRAPS = {
    (source, target): frozenset({target})
    for source, target in (
        ("u", "s"), ("u", "m"), ("s", "m"), ("vu", "vs"), ("vu", "s"), ("vu", "m"), ("vs", "s"), ("vs", "m")
    )
}
STATEEN_BIT = 55  # CTR in mstateen0 and hstateen0
