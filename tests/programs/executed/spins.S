# Instructions that jump to themselves, until an interrupt comes: Spike's -l lists such a one once and then counts it.
# The program ends after five of them.
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start

    .equ CLINT, 0x02000000
    .equ MTIMECMP, 0x4000

_start:
    la t0, timer
    csrw mtvec, t0
    li s0, CLINT + MTIMECMP
    li s1, 0                        # when the timer expires next
    li s2, 0                        # interrupts
    call next_timer
    li t0, 0x80
    csrw mie, t0
    csrsi mstatus, 8
1:  j 1b
    nop
2:  j 2b
    .balign 4
3:  beq zero, zero, 3b
    nop
    j 2b

next_timer:
    addi s1, s1, 30
    sw s1, 0(s0)
    sw zero, 4(s0)
    ret

    .balign 4
timer:
    addi s2, s2, 1
    call next_timer
    li t0, 5
    beq s2, t0, done
    csrr t0, mepc
    lhu t1, 0(t0)
    andi t1, t1, 3
    addi t0, t0, 2
    addi t1, t1, -3
    bnez t1, 1f
    addi t0, t0, 2
1:  csrw mepc, t0
    mret
done:
    finish
