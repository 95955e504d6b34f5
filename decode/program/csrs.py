"""The privileged architecture as tables: CSRs by name and number, parts of CSRs, causes of traps, contexts of a hart.

Sources: RISC-V Instruction Set Manual II (20240411), chapter 2 "CSR Listing", "Sscofpmf", "Supervisor CSRs" (sstatus,
sie and sip are restricted views of mstatus, mie and mip), "Machine Cause (mcause) Register" (table of interrupt and
exception codes, which scause and vscause have, too); RISC-V ISA, "F Extension" (fcsr = frm, fflags); Advanced Interrupt
Architecture 1.0, table 2; Debug Specification 1.0, 4.9, 5.7 and "Abstract Register Numbers".
"""

from typing import NamedTuple

_FIRST = {
    0x001: "fflags frm fcsr",
    0x008: "vstart vxsat vxrm",
    0x00F: "vcsr",
    0x015: "seed",
    0x017: "jvt",
    0x100: "sstatus",
    0x104: "sie stvec scounteren",
    0x10A: "senvcfg",
    0x10C: "sstateen0 sstateen1 sstateen2 sstateen3",
    0x120: "scountinhibit",
    0x140: "sscratch sepc scause stval sip",
    0x14D: "stimecmp",
    0x15C: "stopei stimecmph",
    0x180: "satp",
    0x200: "vsstatus",
    0x204: "vsie vstvec",
    0x240: "vsscratch vsepc vscause vstval vsip",
    0x24D: "vstimecmp",
    0x280: "vsatp",
    0x300: "mstatus misa medeleg mideleg mie mtvec mcounteren",
    0x308: "mvien mvip menvcfg",
    0x30C: "mstateen0 mstateen1 mstateen2 mstateen3",
    0x310: "mstatush",
    0x313: "midelegh mieh",
    0x318: "mvienh mviph",
    0x31A: "menvcfgh",
    0x320: "mcountinhibit",
    0x340: "mscratch mepc mcause mtval mip",
    0x34A: "mtinst mtval2",
    0x354: "miph",
    0x5A8: "scontext",
    0x600: "hstatus",
    0x602: "hedeleg hideleg hie",
    0x606: "hcounteren hgeie",
    0x643: "htval hip hvip",
    0x64A: "htinst",
    0x680: "hgatp",
    0x6A8: "hcontext",
    0x740: "mnscratch mnepc mncause mntval mnstatus",
    0x747: "mseccfg",
    0x757: "mseccfgh",
    0x7A0: "tselect tdata1 tdata2 tdata3 tinfo tcontrol",
    0x7A8: "mcontext",
    0x7B0: "dcsr dpc dscratch0 dscratch1",
    0xB00: "mcycle",
    0xB02: "minstret",
    0xB80: "mcycleh",
    0xB82: "minstreth",
    0xC00: "cycle time instret",
    0xC20: "vl vtype vlenb",
    0xC80: "cycleh timeh instreth",
    0xDA0: "scountovf",
    0xE12: "hgeip",
    0xF11: "mvendorid marchid mimpid mhartid mconfigptr",
}
CSRS = {name: first + n for first, names in _FIRST.items() for n, name in enumerate(names.split())}
CSRS |= {f"pmpcfg{n}": 0x3A0 + n for n in range(16)} | {f"pmpaddr{n}": 0x3B0 + n for n in range(64)}
CSRS |= {f"mhpmcounter{n}": 0xB00 + n for n in range(3, 32)} | {f"mhpmevent{n}": 0x320 + n for n in range(3, 32)}
CSRS |= {f"hpmcounter{n}": 0xC00 + n for n in range(3, 32)}
CSRS |= {f"mhpmcounter{n}h": 0xB80 + n for n in range(3, 32)} | {f"mhpmevent{n}h": 0x720 + n for n in range(3, 32)}
CSRS |= {f"hpmcounter{n}h": 0xC80 + n for n in range(3, 32)}


FFLAGS, FRM, FCSR = 0x001, 0x002, 0x003
SSTATUS, SIE, SCAUSE, SIP, SATP = 0x100, 0x104, 0x142, 0x144, 0x180
VSCAUSE = 0x242
MSTATUS, MIDELEG, MIE, MEPC, MCAUSE, MIP = 0x300, 0x303, 0x304, 0x341, 0x342, 0x344
MNCAUSE = 0x742

STATUS = frozenset({MSTATUS, SSTATUS})
FLOATING = frozenset({FFLAGS, FRM, FCSR})

X, F = 0x1000, 0x1020
"""The numbers of x0 and f0, behind those of the CSRs."""
PRIVILEGE, MTIME, PC_PHYSICAL = 0x1_0000, 0x1_0001, 0x1_0002
"""Numbers, beyond those of the Debug Specification, for states that are not registers."""


class TrapCsrs(NamedTuple):
    """The CSRs that a trap to one privilege mode writes. *mode* is 3 for M, 1 for S (and VS)."""

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
"""The register that each of mret, sret and mnret returns to."""

FS_SHIFT, FS_DIRTY = 13, 3
MPRV, MPP_SHIFT, SPP_SHIFT = 1 << 17, 11, 8

_SSTATUS = (
    1 << 1 | 1 << 5 | 1 << 6 | 1 << 8 | 3 << 9 | 3 << 13 | 3 << 15 | 1 << 18 | 1 << 19 | 1 << 23 | 1 << 24
)  # fmt: skip


class CsrPart(NamedTuple):
    """A register that consists of some bits of another one: those in *mask*, shifted left by *shift*.

    *delegated*: only those bits that are set in mideleg.
    """

    register: int
    mask: int
    shift: int = 0
    delegated: bool = False


def parts(xlen: int, sstatus: int = 0, sie: int = 0) -> dict[int, CsrPart]:
    """Return all registers that are parts of another, or have parts, by number.

    *sstatus* and *sie* are the bits that sstatus, and sie and sip, have in a hart that differs from the specification.
    """
    everything = (1 << xlen) - 1
    top = 1 << xlen - 1 | (3 << 32 if xlen == 64 else 0)
    return {
        FCSR: CsrPart(FCSR, 0xFF),
        FFLAGS: CsrPart(FCSR, 0x1F),
        FRM: CsrPart(FCSR, 0xE0, 5),
        MSTATUS: CsrPart(MSTATUS, everything),
        SSTATUS: CsrPart(MSTATUS, (sstatus or _SSTATUS) | top),
        MIE: CsrPart(MIE, everything),
        SIE: CsrPart(MIE, sie or everything, 0, not sie),
        MIP: CsrPart(MIP, everything),
        SIP: CsrPart(MIP, sie or everything, 0, not sie),
    }


def is_counter(regno: int) -> bool:
    """Return whether a register counts by itself, so that no trace shows its later value."""
    return regno == MTIME or regno & ~0x9F in (0xB00, 0xC00)  # with 32 numbers each, and the high halves 0x80 further


def csr_name(regno: int) -> str:
    """Return the name of a register, or of a state with a number of its own."""
    if regno in NAMES:
        return NAMES[regno]
    if 0x1000 <= regno < 0x1020:
        return f"x{regno - 0x1000}"
    return f"f{regno - 0x1020}" if 0x1020 <= regno < 0x1040 else f"csr 0x{regno:03x}"


NAMES = {
    **{number: name for name, number in CSRS.items()},
    PRIVILEGE: "priv", MTIME: "mtime", PC_PHYSICAL: "pc physical address",
}  # fmt: skip


_EXCEPTIONS = {
    0: "instruction address misaligned",
    1: "instruction access fault",
    2: "illegal instruction",
    3: "breakpoint",
    4: "load address misaligned",
    5: "load access fault",
    6: "store/AMO address misaligned",
    7: "store/AMO access fault",
    8: "environment call from U-mode or VU-mode",
    9: "environment call from HS-mode",
    10: "environment call from VS-mode",
    11: "environment call from M-mode",
    12: "instruction page fault",
    13: "load page fault",
    15: "store/AMO page fault",
    16: "double trap",
    18: "software check",
    19: "hardware error",
    20: "instruction guest-page fault",
    21: "load guest-page fault",
    22: "virtual instruction",
    23: "store/AMO guest-page fault",
}
_INTERRUPTS = {
    1: "supervisor software interrupt",
    2: "virtual supervisor software interrupt",
    3: "machine software interrupt",
    5: "supervisor timer interrupt",
    6: "virtual supervisor timer interrupt",
    7: "machine timer interrupt",
    9: "supervisor external interrupt",
    10: "virtual supervisor external interrupt",
    11: "machine external interrupt",
    12: "supervisor guest external interrupt",
    13: "counter-overflow interrupt",
}


def trap_text(cause: int, interrupt: bool) -> str:
    """Return the text for a trap, with its code."""
    name = (_INTERRUPTS if interrupt else _EXCEPTIONS).get(cause)
    kind = "interrupt" if interrupt else "exception"
    return f"{kind} {cause}" if name is None else f"{kind} {cause} ({name})"


UNKNOWN_THREAD = (1 << 32) - 1
"""In place of the ID of a thread that `scontext` would have: one runs, and nobody knows which."""


class ProgramContext(NamedTuple):
    """The program that a hart runs, as far as reported. None: not known.

    prv       privilege mode: 0 U, 1 S, 3 M
    virtual   in a guest (V = 1: VU- or VS-mode)
    scontext  the supervisor's context: the process, for most operating systems
    hcontext  the hypervisor's context: the guest
    epoch     which of the programs that were in memory there one after the other, where somebody has noted when
    """

    prv: int | None = None
    virtual: bool = False
    scontext: int | None = None
    hcontext: int | None = None
    epoch: int = 0
