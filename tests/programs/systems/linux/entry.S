# The switch of tasks and the handler of interrupts, as in Linux's arch/riscv/kernel/entry.S, in machine mode.
#include "word.h"
#define FRAME (34 * WORD) /* as struct pt_regs: epc, x1 to x31 at their numbers, status */

    .text
    .globl __switch_to
    .type __switch_to, @function
__switch_to:                    # a0: the task that waits, a1: the one that goes on; returns the one before
    lw t2, thread_offset
    add a3, a0, t2
    add a4, a1, t2
    STORE ra, 0(a3)
    STORE sp, WORD(a3)
    .set at, 2
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
    STORE s\n, WORD*at(a3)
    .set at, at + 1
    .endr
    LOAD ra, 0(a4)
    LOAD sp, WORD(a4)
    .set at, 2
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
    LOAD s\n, WORD*at(a4)
    .set at, at + 1
    .endr
    mv tp, a1
    ret
    .size __switch_to, .-__switch_to

    .globl ret_from_fork
    .type ret_from_fork, @function
ret_from_fork:                  # what __switch_to returns to the first time
    call schedule_tail
    mv a0, s1
    jalr s0
    tail do_exit
    .size ret_from_fork, .-ret_from_fork

    .balign 4
    .globl handle_exception
    .type handle_exception, @function
handle_exception:
    addi sp, sp, -FRAME
    .irp n, 1,3,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    STORE x\n, WORD*\n(sp)
    .endr
    csrr t0, mepc
    STORE t0, 0(sp)
    csrr t0, mstatus
    STORE t0, WORD*32(sp)
    csrr a0, mcause
    call do_irq
ret_from_exception:
    LOAD t0, 0(sp)
    csrw mepc, t0
    LOAD t0, WORD*32(sp)
    csrw mstatus, t0
    .irp n, 1,3,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    LOAD x\n, WORD*\n(sp)
    .endr
    addi sp, sp, FRAME
    mret
    .size handle_exception, .-handle_exception
