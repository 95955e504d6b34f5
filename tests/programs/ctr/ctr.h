# Control Transfer Records for the test programs: CSR and bit numbers of version 1.0, or of draft 0.1.4 with -DCTR_0_1_4.
# Each write of a CSR that matters is also noted in section .ctr_writes (address, CSR, value; 64-bit words), which is not
# loaded: with it, the addresses that were executed are enough to know what was recorded. With -DCTR_NONE nothing is
# written: a debugger does it.

#ifdef CTR_0_1_4
    .equ CTR_M, 1 << 0
    .equ CTR_S, 1 << 1
    .equ CTR_U, 1 << 2
    .equ CTR_MTE, 1 << 8 | 1 << 38
    .equ CTR_STE, 1 << 9 | 1 << 38
    .equ CTR_RASEMU, 1 << 10
#define CTR_CONTROL 0x381
#define CTR_S_CONTROL 0x181
#define CTR_VS_CONTROL 0x281
#define CTR_STATUS 0x383
#define CTR_SELECT 0x350
#define CTR_SOURCE 0x351
#define CTR_TARGET 0x352
#define CTR_DATA 0x353
    .equ CTR_DEPTH_16, (0 << 16)
    .equ CTR_DEPTH_32, (1 << 16)
    .equ CTR_DEPTH_64, (3 << 16)
    .equ CTR_DEPTH_128, (7 << 16)
    .equ CTR_DEPTH_256, (15 << 16)
#else
    .equ CTR_M, 1 << 2
    .equ CTR_S, 1 << 1
    .equ CTR_U, 1 << 0
    .equ CTR_MTE, 1 << 9
    .equ CTR_STE, 1 << 8
    .equ CTR_RASEMU, 1 << 7
#define CTR_CONTROL 0x34e
#define CTR_S_CONTROL 0x14e
#define CTR_VS_CONTROL 0x24e
#define CTR_STATUS 0x14f
#define CTR_SELECT 0x150
#define CTR_SOURCE 0x151
#define CTR_TARGET 0x152
#define CTR_DATA 0x153
    .equ CTR_DEPTH_16, 0
    .equ CTR_DEPTH_32, 1
    .equ CTR_DEPTH_64, 2
    .equ CTR_DEPTH_128, 3
    .equ CTR_DEPTH_256, 4
#endif
    .equ CTR_ALL, CTR_M | CTR_S | CTR_U
    .equ CTR_BPFRZ, 1 << 11
    .equ CTR_LCOFIFRZ, 1 << 12
    .equ CTR_EXC, 1 << 33
    .equ CTR_INTR, 1 << 34
    .equ CTR_TRET, 1 << 35
    .equ CTR_NTBREN, 1 << 36

# Writes a CSR; uses t6.
    .macro ctr_write csr, value
#ifndef CTR_NONE
    li   t6, \value
    .pushsection .ctr_writes, "", @progbits
    .8byte 9f, \csr, (\value) & 0xffffffffffffffff
    .popsection
9:  csrw \csr, t6
#endif
    .endm

# Everything empty at a depth, recording off. \depth: 16, 32, 64, 128 or 256.
    .macro ctr_clear depth
    ctr_write CTR_CONTROL, 0
#ifdef CTR_0_1_4
    ctr_write CTR_CONTROL, (CTR_DEPTH_\depth | 1 << 7)
#elif !defined(CTR_NONE)
    ctr_write 0x15f, CTR_DEPTH_\depth
    .4byte 0x10400073           # SCTRCLR
#endif
    ctr_write CTR_STATUS, 0
    .endm

# Where a test looks: look_NAME. Recording may be on or off.
    .macro look name
    .globl look_\name
look_\name:
    nop
    .endm

# Recording on and off; the draft has the depth in the same register.
    .macro ctr_on value, depth=16
#ifdef CTR_0_1_4
    ctr_write CTR_CONTROL, (CTR_DEPTH_\depth | (\value))
#else
    ctr_write CTR_CONTROL, (\value)
#endif
    .endm
    .macro ctr_off depth=16
    ctr_on 0, \depth
    .endm
