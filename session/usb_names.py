"""Names of registers, for who types them: general ones as x1 or ra, CSRs as mepc, 0x341 or csr833.

Source: RISC-V Instruction Set Manual I, table "Assembler mnemonics"; II (20240411), chapter 2 "CSR Listing"; Debug
Specification 1.0, 4.9 and 5.7.
"""

_ABI = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"
GPRS = tuple(_ABI.split(" "))
NAMED = ("pc", "priv")
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
    0x15C: "stopei",
    0x180: "satp",
    0x200: "vsstatus",
    0x204: "vsie vstvec",
    0x240: "vsscratch vsepc vscause vstval vsip",
    0x24D: "vstimecmp",
    0x280: "vsatp",
    0x300: "mstatus misa medeleg mideleg mie mtvec mcounteren",
    0x30A: "menvcfg",
    0x30C: "mstateen0 mstateen1 mstateen2 mstateen3",
    0x310: "mstatush",
    0x31A: "menvcfgh",
    0x320: "mcountinhibit",
    0x340: "mscratch mepc mcause mtval mip",
    0x34A: "mtinst mtval2",
    0x5A8: "scontext",
    0x600: "hstatus",
    0x602: "hedeleg hideleg hie hcounteren hgeie",
    0x643: "htval hip hvip",
    0x64A: "htinst",
    0x680: "hgatp",
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


def gpr(name: str) -> int | None:
    """The number of a general register."""
    if name == "fp":
        return 8
    if name in GPRS:
        return GPRS.index(name)
    number = name[1:]
    return int(number) if name[:1] == "x" and number.isascii() and number.isdigit() and int(number) < 32 else None


def csr(name: str) -> int | None:
    """The number of a CSR."""
    if name in CSRS:
        return CSRS[name]
    try:
        number = int(name.removeprefix("csr"), 0)
    except ValueError:
        return None
    return number if 0 <= number < 0x1000 else None
