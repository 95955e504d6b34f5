"""The numbers of CSRs by their names.

Source: RISC-V Instruction Set Manual II (20240411), chapter 2 "CSR Listing", "Sscofpmf"; Advanced Interrupt
Architecture 1.0, table 2; Debug Specification 1.0, 4.9 and 5.7.
"""

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
