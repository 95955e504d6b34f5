# The switch of threads and the handler of interrupts, as in Zephyr's arch/riscv/core: switch.S, isr.S.
#include "word.h"
#define FRAME (20 * WORD) /* what callees do not save: mepc, mstatus, ra, t0 to t6, a0 to a7 */

    .text
    .globl z_riscv_switch
    .type z_riscv_switch, @function
z_riscv_switch:                 # a0: the thread that goes on, a1: the one that waits
    lw t2, callee_saved_offset
    add t0, a1, t2
    STORE sp, 0(t0)
    STORE ra, WORD(t0)
    .set at, 2
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
    STORE s\n, WORD*at(t0)
    .set at, at + 1
    .endr
    add t0, a0, t2
    LOAD sp, 0(t0)
    LOAD ra, WORD(t0)
    .set at, 2
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
    LOAD s\n, WORD*at(t0)
    .set at, at + 1
    .endr
    ret
    .size z_riscv_switch, .-z_riscv_switch

    .globl z_riscv_thread_start
    .type z_riscv_thread_start, @function
z_riscv_thread_start:           # what z_riscv_switch returns to the first time
    mv a0, s0
    tail z_thread_entry
    .size z_riscv_thread_start, .-z_riscv_thread_start

    .balign 4
    .globl _isr_wrapper
    .type _isr_wrapper, @function
_isr_wrapper:
    addi sp, sp, -FRAME
    .set at, 2
    .irp n, 1,5,6,7,10,11,12,13,14,15,16,17,28,29,30,31
    STORE x\n, WORD*at(sp)
    .set at, at + 1
    .endr
    csrr t0, mepc
    STORE t0, 0(sp)
    csrr t0, mstatus
    STORE t0, WORD(sp)
    STORE s0, WORD*18(sp)
    mv s0, sp
    csrr t1, mscratch           # struct _cpu: nested, irq_stack
    lw t0, 0(t1)
    addi t2, t0, 1
    sw t2, 0(t1)
    bnez t0, serve
    LOAD sp, WORD(t1)
serve:
    csrr a0, mcause
    call z_riscv_interrupt
    mv sp, s0
    csrr t1, mscratch
    lw t0, 0(t1)
    addi t0, t0, -1
    sw t0, 0(t1)
    bnez t0, leave
    call z_riscv_reschedule
leave:
    LOAD t0, 0(sp)
    csrw mepc, t0
    LOAD t0, WORD(sp)
    csrw mstatus, t0
    LOAD s0, WORD*18(sp)
    .set at, 2
    .irp n, 1,5,6,7,10,11,12,13,14,15,16,17,28,29,30,31
    LOAD x\n, WORD*at(sp)
    .set at, at + 1
    .endr
    addi sp, sp, FRAME
    mret
    .size _isr_wrapper, .-_isr_wrapper
