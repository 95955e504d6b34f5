"""Facts about registers: numbers, names, and which of them are parts of others.

Source: RISC-V Privileged Architecture 1.13, "CSR Listing", "Supervisor CSRs" (sstatus, sie and sip are restricted views
of mstatus, mie and mip), "Machine Cause"; RISC-V ISA, "F Extension" (fcsr = frm, fflags); RISC-V Debug Specification,
"Abstract Register Numbers".
"""

from typing import NamedTuple

from rvtrace_gdb.decode.csr_names import CSRS

FFLAGS, FRM, FCSR = 0x001, 0x002, 0x003
SSTATUS, SIE, SCAUSE, SIP, SATP = 0x100, 0x104, 0x142, 0x144, 0x180
VSCAUSE = 0x242
MSTATUS, MIDELEG, MIE, MEPC, MCAUSE, MIP = 0x300, 0x303, 0x304, 0x341, 0x342, 0x344
MNCAUSE = 0x742

STATUS = frozenset({MSTATUS, SSTATUS})
FLOATING = frozenset({FFLAGS, FRM, FCSR})

PRIVILEGE, MTIME, PC_PHYSICAL = 0x1_0000, 0x1_0001, 0x1_0002
"""Numbers, beyond those of the Debug Specification, for states that are no registers."""


class TrapCsrs(NamedTuple):
    """What a trap to one privilege mode writes. *mode*: 3 M, 1 S (VS, too)."""

    status: int
    epc: int
    cause: int
    tval: int
    mode: int


TRAPS = (
    TrapCsrs(MSTATUS, MEPC, MCAUSE, 0x343, 3),
    TrapCsrs(SSTATUS, 0x141, SCAUSE, 0x143, 1),
    TrapCsrs(0x200, 0x241, VSCAUSE, 0x243, 1),
    TrapCsrs(0x744, 0x741, MNCAUSE, 0x743, 3),
)
TRAP_OF_CAUSE = {csrs.cause: csrs for csrs in TRAPS}

XRETS = {0x3020_0073: MEPC, 0x1020_0073: 0x141, 0x7020_0073: 0x741}
"""mret, sret, mnret: the register each returns to."""

FS_SHIFT, FS_DIRTY = 13, 3
MPRV, MPP_SHIFT, SPP_SHIFT = 1 << 17, 11, 8

_SSTATUS = (
    1 << 1 | 1 << 5 | 1 << 6 | 1 << 8 | 3 << 9 | 3 << 13 | 3 << 15 | 1 << 18 | 1 << 19 | 1 << 23 | 1 << 24
)  # fmt: skip


class Part(NamedTuple):
    """A register that is some bits of another one: those in *mask*, *shift* up. *delegated*: only those of mideleg."""

    whole: int
    mask: int
    shift: int = 0
    delegated: bool = False


def parts(xlen: int, sstatus: int = 0, sie: int = 0) -> dict[int, Part]:
    """All registers that are parts of another, or have parts, by number.

    *sstatus*, *sie*: the bits that sstatus, and sie and sip, have in a hart that differs from the specification there.
    """
    everything = (1 << xlen) - 1
    top = 1 << xlen - 1 | (3 << 32 if xlen == 64 else 0)
    return {
        FCSR: Part(FCSR, 0xFF),
        FFLAGS: Part(FCSR, 0x1F),
        FRM: Part(FCSR, 0xE0, 5),
        MSTATUS: Part(MSTATUS, everything),
        SSTATUS: Part(MSTATUS, (sstatus or _SSTATUS) | top),
        MIE: Part(MIE, everything),
        SIE: Part(MIE, sie or everything, 0, not sie),
        MIP: Part(MIP, everything),
        SIP: Part(MIP, sie or everything, 0, not sie),
    }


def is_counter(regno: int) -> bool:
    """Whether a register counts by itself: what it is later, no trace says."""
    return regno == MTIME or regno & ~0x9F in (0xB00, 0xC00)  # with 32 numbers each, and the high halves 0x80 further


def name(regno: int) -> str:
    """The name of a register, or of a state with a number of its own."""
    if regno in NAMES:
        return NAMES[regno]
    if 0x1000 <= regno < 0x1020:
        return f"x{regno - 0x1000}"
    return f"f{regno - 0x1020}" if 0x1020 <= regno < 0x1040 else f"csr 0x{regno:03x}"


NAMES = {
    **{number: name for name, number in CSRS.items()},
    PRIVILEGE: "priv", MTIME: "mtime", PC_PHYSICAL: "pc physical address",
}  # fmt: skip
