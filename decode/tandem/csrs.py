"""Facts about registers: numbers, names, and which of them are parts of others.

Source: RISC-V Privileged Architecture 1.13, "CSR Listing", "Supervisor CSRs" (sstatus, sie and sip are restricted views
of mstatus, mie and mip), "Machine Cause"; RISC-V ISA, "F Extension" (fcsr = frm, fflags); RISC-V Debug Specification,
"Abstract Register Numbers".
"""

from typing import NamedTuple

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


def parts(xlen: int) -> dict[int, Part]:
    """All registers that are parts of another, or have parts, by number."""
    everything = (1 << xlen) - 1
    top = 1 << xlen - 1 | (3 << 32 if xlen == 64 else 0)
    return {
        FCSR: Part(FCSR, 0xFF),
        FFLAGS: Part(FCSR, 0x1F),
        FRM: Part(FCSR, 0xE0, 5),
        MSTATUS: Part(MSTATUS, everything),
        SSTATUS: Part(MSTATUS, _SSTATUS | top),
        MIE: Part(MIE, everything),
        SIE: Part(MIE, everything, 0, True),
        MIP: Part(MIP, everything),
        SIP: Part(MIP, everything, 0, True),
    }


def is_counter(csr: int) -> bool:
    """Whether a CSR counts by itself: what it is later, no trace says."""
    return csr & ~0x9F in (0xB00, 0xC00)  # with 32 numbers each, and the high halves 0x80 further


def name(regno: int) -> str:
    """The name of a register, or of a state with a number of its own."""
    if regno in NAMES:
        return NAMES[regno]
    if 0x1000 <= regno < 0x1020:
        return f"x{regno - 0x1000}"
    return f"f{regno - 0x1020}" if 0x1020 <= regno < 0x1040 else f"csr 0x{regno:03x}"


NAMES = {
    PRIVILEGE: "priv", MTIME: "mtime", PC_PHYSICAL: "pc physical address",
    0x001: "fflags", 0x002: "frm", 0x003: "fcsr", 0x008: "vstart", 0x009: "vxsat", 0x00A: "vxrm", 0x00F: "vcsr",
    0x015: "seed", 0x017: "jvt", 0x100: "sstatus", 0x104: "sie", 0x105: "stvec", 0x106: "scounteren",
    0x10A: "senvcfg", 0x120: "scountinhibit", 0x140: "sscratch", 0x141: "sepc", 0x142: "scause", 0x143: "stval",
    0x144: "sip", 0x14D: "stimecmp", 0x15D: "stimecmph", 0x180: "satp", 0x200: "vsstatus", 0x204: "vsie",
    0x205: "vstvec", 0x240: "vsscratch", 0x241: "vsepc", 0x242: "vscause", 0x243: "vstval", 0x244: "vsip",
    0x280: "vsatp", 0x300: "mstatus", 0x301: "misa", 0x302: "medeleg", 0x303: "mideleg", 0x304: "mie",
    0x305: "mtvec", 0x306: "mcounteren", 0x30A: "menvcfg", 0x310: "mstatush", 0x31A: "menvcfgh",
    0x320: "mcountinhibit", 0x340: "mscratch", 0x341: "mepc", 0x342: "mcause", 0x343: "mtval", 0x344: "mip",
    0x34A: "mtinst", 0x34B: "mtval2", 0x5A8: "scontext", 0x600: "hstatus", 0x602: "hedeleg", 0x603: "hideleg",
    0x604: "hie", 0x606: "hcounteren", 0x643: "htval", 0x644: "hip", 0x680: "hgatp", 0x6A8: "hcontext",
    0x740: "mnscratch", 0x741: "mnepc", 0x742: "mncause", 0x743: "mntval", 0x744: "mnstatus", 0x747: "mseccfg",
    0x7A0: "tselect", 0x7A1: "tdata1", 0x7A2: "tdata2", 0x7A3: "tdata3", 0x7A4: "tinfo", 0x7A5: "tcontrol",
    0x7A8: "mcontext", 0x7B0: "dcsr", 0x7B1: "dpc", 0x7B2: "dscratch0", 0x7B3: "dscratch1", 0xB00: "mcycle",
    0xB02: "minstret", 0xB80: "mcycleh", 0xB82: "minstreth", 0xC00: "cycle", 0xC01: "time", 0xC02: "instret",
    0xC20: "vl", 0xC21: "vtype", 0xC22: "vlenb", 0xC80: "cycleh", 0xC81: "timeh", 0xC82: "instreth",
    0xF11: "mvendorid", 0xF12: "marchid", 0xF13: "mimpid", 0xF14: "mhartid", 0xF15: "mconfigptr",
    **{0x3A0 + i: f"pmpcfg{i}" for i in range(16)}, **{0x3B0 + i: f"pmpaddr{i}" for i in range(64)},
}  # fmt: skip
