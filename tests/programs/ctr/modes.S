# Traps and trap returns between M, S and U mode, exceptions and interrupts, in all combinations of enabled modes and of
# external traps. 1.0 needs no more than its own CSRs; as the draft it is for harts that have all three modes.
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
    li   t0, 1 << 2 | 1 << 3            # illegal instructions and breakpoints go to S mode, from there and from U mode
    csrw medeleg, t0
    li   t0, 1 << 1                     # and the supervisor software interrupt
    csrw mideleg, t0
    li   t0, 1 << 1 | 1 << 3
    csrw mie, t0

    .altmacro
    .set number, 0
    .macro phase number, value
    ctr_clear 64
    ctr_on \value, 64
    jal  s0, exercise
    look modes_\number
    ctr_off 64
    .endm
    .macro with modes
    .irp external, 0, CTR_MTE, CTR_STE, CTR_MTE+CTR_STE
    .set number, number + 1
    phase %number, (\modes|\external)
    .endr
    .endm
    with 0
    with CTR_M
    with CTR_S
    with CTR_U
    with CTR_M+CTR_S
    with CTR_M+CTR_U
    with CTR_S+CTR_U
    with CTR_ALL
    .irp filter, EXC, INTR, TRET
    .set number, number + 1
    phase %number, (CTR_ALL|CTR_\filter)
    .set number, number + 1
    phase %number, (CTR_U|CTR_\filter)
    .set number, number + 1
    phase %number, (CTR_S|CTR_\filter)
    .set number, number + 1
    phase %number, (CTR_U|CTR_MTE|CTR_STE|CTR_\filter)
    .endr
    .globl done
done:
    j    done

# From M mode to U, to S, to U and back, with all kinds of traps on the way. a7 says what an ecall wants, a5 whether the
# handler of S mode traps itself.
exercise:
    li   a7, 0
    li   a5, 0
    li   t0, 3 << 11
    csrc mstatus, t0
    la   t0, user
    csrw mepc, t0
    mret
user:
    j    1f
    nop
1:  ecall
    ebreak
    li   a5, 1
    .4byte 0xffffffff
    li   a5, 0
    li   t1, 0x02000000                 # CLINT: a machine software interrupt, whose handler asks for one of S mode
    li   t2, 1
    sw   t2, 0(t1)
    nop
    beq  zero, zero, 1f
    nop
1:  li   a7, 1
    ecall
supervisor:
    li   a7, 0
    j    1f
    nop
1:  ecall
    ebreak
    .4byte 0xffffffff
    csrsi sip, 2
    csrsi sstatus, 2                    # the interrupt comes here
    csrci sstatus, 2
    li   t0, 1 << 8
    csrc sstatus, t0
    la   t0, user_again
    csrw sepc, t0
    sret
user_again:
    li   a7, 2
    ecall

    .balign 4
trap_m:
    csrr s6, mcause
    bltz s6, interrupt_m
    csrr s7, mepc
    addi s7, s7, 4
    csrw mepc, s7
    li   s8, 1
    beq  a7, s8, to_s
    li   s8, 2
    beq  a7, s8, to_m
    mret
interrupt_m:
    li   s7, 0x02000000
    sw   zero, 0(s7)
    csrsi mip, 2
    mret
to_s:
    li   s7, 1 << 11
    csrs mstatus, s7
    mret
to_m:
    jr   s0

    .balign 4
trap_s:
    csrr s9, scause
    bltz s9, interrupt_s
    csrr s10, sepc
    addi s10, s10, 4
    beqz a5, 1f
    ecall
1:  csrw sepc, s10
    sret
interrupt_s:
    csrci sip, 2
    sret
