# Freezing on breakpoints and on local counter overflow interrupts (pended by hand; the hart needs Sscofpmf), in M and
# in S mode, and going on afterwards.
#include "ctr.h"
    .section .text.start
    .option norelax
    .option norvc
    .globl _start
_start:
    la   t0, trap_m
    csrw mtvec, t0
    la   t0, trap_s
    csrw stvec, t0
    li   t0, -1
    csrw pmpaddr0, t0
    li   t0, 0x1f
    csrw pmpcfg0, t0

    .macro phase name, value, cause
    ctr_clear 16
    ctr_on \value
    jal  s0, exercise
    look \name
    ctr_write CTR_STATUS, 0
    jal  s0, exercise
    look \name\()_again
    ctr_off
    .endm

    .irp to, m, s
    .ifc \to, s
    li   t0, 1 << 3
    csrw medeleg, t0
    li   t0, 1 << 13
    csrw mideleg, t0
    .endif
    phase bp_\to, CTR_ALL|CTR_BPFRZ
    phase lcofi_\to, CTR_ALL|CTR_LCOFIFRZ
    phase both_\to, CTR_ALL|CTR_BPFRZ|CTR_LCOFIFRZ
    phase none_\to, CTR_ALL
    phase s_only_\to, CTR_S|CTR_BPFRZ
    phase u_only_\to, CTR_U|CTR_LCOFIFRZ
    phase ras_\to, CTR_ALL|CTR_RASEMU|CTR_BPFRZ
    .endr
    .globl done
done:
    j    done

# In S mode: an ecall, the interrupt, an ebreak, jumps in between.
exercise:
    li   a7, 0
    li   t0, 1 << 12
    csrc mstatus, t0
    li   t0, 1 << 11 | 2
    csrs mstatus, t0
    la   t0, supervisor
    csrw mepc, t0
    li   t0, 1 << 13
    csrs mip, t0
    csrc mie, t0
    mret
supervisor:
    j    1f
    nop
1:  ecall                               # M mode enables the interrupt
    jal  ra, 1f
    nop
1:  ebreak
    jal  t1, 1f
    nop
1:  li   a7, 1
    ecall

    .balign 4
trap_m:
    csrr s6, mcause
    bltz s6, interrupt_m
    csrr s7, mepc
    addi s7, s7, 4
    csrw mepc, s7
    bnez a7, to_m
    li   s7, 1 << 13
    csrs mie, s7
    mret
interrupt_m:
    li   s7, 1 << 13
    csrc mip, s7
    mret
to_m:
    jr   s0

    .balign 4
trap_s:
    csrr s9, scause
    bltz s9, interrupt_s
    csrr s10, sepc
    addi s10, s10, 4
    csrw sepc, s10
    sret
interrupt_s:
    li   s9, 1 << 13
    csrc sip, s9
    sret
