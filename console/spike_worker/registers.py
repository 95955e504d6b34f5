"""Numbers of registers and bits.

Source: RISC-V Debug Specification 1.0, "Abstract Register Numbers"; Privileged Architecture, "CSR Listing"; SiFive
FU540-C000 manual, chapters 9 (CLINT) and 10 (PLIC). From 0x10000 on: `session.tandem.model`.
"""

X, F, PRIVILEGE, MTIME, PC = 0x1000, 0x1020, 0x1_0000, 0x1_0001, 0x1_0003

FFLAGS, FCSR, SATP = 0x001, 0x003, 0x180
MSTATUS, MISA, MIE, MEPC, MCAUSE, MTVAL, MIP = 0x300, 0x301, 0x304, 0x341, 0x342, 0x343, 0x344
SEPC, SCAUSE, STVAL = 0x141, 0x142, 0x143
PMPADDR0, MOST_PMP = 0x3B0, 64
DEBUG_MODE = range(0x7B0, 0x7B4)
TRIGGERS, TSELECT, TDATA1, DISABLED = 4, 0x7A0, 0x7A1, 15
MCYCLE, TIME, TIMEH = 0xB00, 0xC01, 0xC81

COUNTERS = {0xC00: 0xB00, 0xC02: 0xB02, 0xC80: 0xB80, 0xC82: 0xB82}
"""Views of counters, and the counters."""

TRAPS = {3: (MEPC, MCAUSE, MTVAL, MSTATUS), 1: (SEPC, SCAUSE, STVAL, MSTATUS)}
"""What a trap writes, by the mode it leads to; the second one is the cause."""

MACHINE = 3
MPRV, STATUS_FS, STATUS_VS, STATUS_MIE = 1 << 17, 3 << 13, 3 << 9, 1 << 3
MSIP, MTIP, MEIP = 1 << 3, 1 << 7, 1 << 11

WFI, CSRR_X5 = 0x1050_0073, 0x0000_22F3

MTIMECMP, MTIME_OFFSET, NEVER = 0x4000, 0xBFF8, (1 << 64) - 1
PLIC_PRIORITY_1, PLIC_ENABLE_M = 4, 0x2000
