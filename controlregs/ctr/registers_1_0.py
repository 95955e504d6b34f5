"""CSRs of the ratified version, except those that give access to the entries (`entries`).

Ref: RISC-V Control Transfer Records (Smctr, Ssctr)
Version: 1.0, ratified 2024-11-22
Section: CSRs
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.ctr.entries import TransferType, filter_fields, flag_field
from rvtrace_gdb.controlregs.fields import Csr, Field, FieldAccess, reserved


class Depth(IntEnum):
    """Codes of DEPTH: a hart has 16 << DEPTH entries. Codes above are reserved. A hart may support any subset."""

    ENTRIES_16 = 0
    ENTRIES_32 = 1
    ENTRIES_64 = 2
    ENTRIES_128 = 3
    ENTRIES_256 = 4


FILTERS = {
    TransferType.EXCEPTION: "EXCINH",
    TransferType.INTERRUPT: "INTRINH",
    TransferType.TRAP_RETURN: "TRETINH",
    TransferType.NOT_TAKEN_BRANCH: "NTBREN",
    TransferType.TAKEN_BRANCH: "TKBRINH",
    TransferType.INDIRECT_CALL: "INDCALLINH",
    TransferType.DIRECT_CALL: "DIRCALLINH",
    TransferType.INDIRECT_JUMP: "INDJMPINH",
    TransferType.DIRECT_JUMP: "DIRJMPINH",
    TransferType.COROUTINE_SWAP: "CORSWAPINH",
    TransferType.FUNCTION_RETURN: "RETINH",
    TransferType.OTHER_INDIRECT_JUMP: "INDLJMPINH",
    TransferType.OTHER_DIRECT_JUMP: "DIRLJMPINH",
}
FREEZE = (
    Field("BPFRZ", 1, FieldAccess.RW, doc="set FROZEN on a breakpoint exception"),
    flag_field("LCOFIFRZ", "set FROZEN on a local counter overflow interrupt"),
)
HIGH = (*filter_fields(FILTERS), Field("Custom", 4, doc="custom extensions; 0 is the behaviour of the standard"))
RASEMU = flag_field("RASEMU", "keep a stack of calls (RAS emulation)")
S_AND_U = (
    Field("U", 1, FieldAccess.RW, doc="record in U mode"),
    Field("S", 1, FieldAccess.RW, doc="record in S mode"),
)
STE = flag_field("STE", "record traps to S mode though S=0")

MCTRCTL = Csr("mctrctl", 0x34E, "control, as M mode sees it", (
    *S_AND_U,
    Field("M", 1, FieldAccess.RW, doc="record in M mode"),
    reserved(4),
    RASEMU,
    STE,
    flag_field("MTE", "record traps to M mode though M=0"),
    reserved(1),
    *FREEZE,
    reserved(19),
    *HIGH,
))
SCTRCTL = Csr("sctrctl", 0x14E, "control, as S mode sees it: mctrctl without M and MTE, which read 0", (
    *S_AND_U,
    reserved(5),
    RASEMU,
    STE,
    reserved(2),
    *FREEZE,
    reserved(19),
    *HIGH,
))
VSCTRCTL = Csr("vsctrctl", 0x24E, "control of VS and VU mode, which see it as sctrctl; with the H extension", (
    Field("U", 1, FieldAccess.RW, doc="record in VU mode"),
    Field("S", 1, FieldAccess.RW, doc="record in VS mode"),
    reserved(5),
    RASEMU,
    flag_field("STE", "record traps to VS mode though S=0"),
    reserved(2),
    *FREEZE,
    reserved(19),
    *HIGH,
))
SCTRDEPTH = Csr("sctrdepth", 0x15F, "depth of the buffer; VS and VU mode cannot reach it", (
    Field("DEPTH", 3, doc="entries: 16 << DEPTH", values=Depth),
    reserved(29),
))
SCTRSTATUS = Csr("sctrstatus", 0x14F, "status, which the hart updates while it records", (
    Field("WRPTR", 8, doc="entry that is written next; only the bits that depth - 1 needs"),
    reserved(23),
    flag_field("FROZEN", "nothing is recorded; set on what BPFRZ and LCOFIFRZ say, and by software"),
))
REGISTERS = (SCTRCTL, SCTRSTATUS, SCTRDEPTH, VSCTRCTL, MCTRCTL)
# External Traps: (source, target) -> whose xTE must be 1, those of the modes in between included
EXTERNAL_TRAPS = {
    ("u", "s"): frozenset({"s"}),
    ("u", "m"): frozenset({"m", "s"}),
    ("s", "m"): frozenset({"m"}),
    ("vu", "vs"): frozenset({"vs"}),
    ("vu", "s"): frozenset({"s", "vs"}),
    ("vu", "m"): frozenset({"m", "s", "vs"}),
    ("vs", "s"): frozenset({"s"}),
    ("vs", "m"): frozenset({"m", "s"}),
}
SCTRCLR = 0x1040_0073  # instruction: zeroes all entries, the cycle counter and CCV; sctrstatus stays
STATEEN_BIT = 54  # CTR in mstateen0 and hstateen0
