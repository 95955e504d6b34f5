# Software and timer interrupts in M and U mode, vectored and direct, WFI, while the program counts in a0 and computes.
# The timer is set to absolute times and never read: simulators' clocks differ, what the program does must not. (Spike
# lets 50 ticks pass per 5000 instructions, and per trap; our hart one per instruction.)
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start

    .equ CLINT, 0x02000000
    .equ MTIMECMP, 0x4000
#ifndef PERIOD
#define PERIOD 120
#endif

_start:
    la sp, __stack_top
    li s0, CLINT
    li s1, CLINT + MTIMECMP
    li s2, 0                        # when the timer expires next
    li s3, 0                        # timer interrupts
    li s4, 0                        # software interrupts
    la t0, vectors
    addi t0, t0, 1
    csrw mtvec, t0
    call next_timer
    li t0, 0x88
    csrw mie, t0
    csrsi mstatus, 8
    call work
    # The same in U mode with direct mtvec, MIE clear: U mode can always be interrupted.
    la t0, direct
    csrw mtvec, t0
    li t0, 0x1808
    csrc mstatus, t0
    la t0, user
    csrw mepc, t0
    mret
user:
    call work
    la t0, machine                  # the handler returns there
    ecall
machine:
    csrci mstatus, 8
    # WFI until the timer, taken as an interrupt and not.
    call next_timer
    wfi
    csrsi mstatus, 8
    nop
    call next_timer
    wfi
    csrci mstatus, 8
    csrr t0, mie
    mv a1, s3
    finish

# Some 18000 instructions of computing; asks for a software interrupt now and then (a CSR access makes it visible).
work:
    li t0, 1600
    li t1, 1
1:  mul t1, t1, t0
    addi t1, t1, 7
    xor a0, a0, t1
    slli t2, a0, 3
    add a0, a0, t2
    addi a2, a2, 1
    andi t2, t0, 255
    bnez t2, 2f
    li t2, 1
    sw t2, 0(s0)
2:  addi t0, t0, -1
    bnez t0, 1b
    ret

# mtimecmp = s2 += PERIOD
next_timer:
    addi s2, s2, PERIOD
    sw s2, 0(s1)
    sw zero, 4(s1)
    ret

    .balign 256
vectors:
    j exception
    .balign 4
    j exception
    .balign 4
    j exception
    .balign 4
    j software
    .balign 4
    j exception
    .balign 4
    j exception
    .balign 4
    j exception
    .balign 4
    j timer

    .balign 4
direct:
    csrw mscratch, t5
    csrr t5, mcause
    bgez t5, exception
    andi t5, t5, 4                  # 7 timer, 3 software
    bnez t5, 1f
    csrr t5, mscratch
    j software
1:  csrr t5, mscratch
timer:
    addi sp, sp, -16
    SX ra, 0(sp)
    addi s3, s3, 1
    call next_timer
    LX ra, 0(sp)
    addi sp, sp, 16
    mret
software:
    addi s4, s4, 1
    sw zero, 0(s0)
    mret
exception:
    csrw mepc, t0
    li t5, 0x1800
    csrs mstatus, t5
    mret
