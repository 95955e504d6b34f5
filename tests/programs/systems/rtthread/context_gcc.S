# The switch of threads, as in RT-Thread's libcpu/risc-v/common: at the end of a trap, if one was asked for.
#include "word.h"
#define FRAME (34 * WORD)

    .text
    .balign 4
    .globl rt_hw_trap_entry
    .type rt_hw_trap_entry, @function
rt_hw_trap_entry:
    addi sp, sp, -FRAME
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    STORE x\n, WORD*\n(sp)
    .endr
    csrr t0, mepc
    STORE t0, 0(sp)
    csrr t0, mstatus
    STORE t0, WORD*32(sp)
    mv s0, sp
    la sp, __stack_top          # that of start-up serves interrupts
    csrr a0, mcause
    call handle_trap
    mv sp, s0
    LOAD t0, rt_thread_switch_interrupt_flag
    beqz t0, leave
    la t1, rt_thread_switch_interrupt_flag
    STORE zero, 0(t1)
    LOAD t1, rt_interrupt_from_thread
    STORE sp, 0(t1)
    LOAD a0, rt_interrupt_to_thread
    .globl rt_hw_context_switch_to
    .type rt_hw_context_switch_to, @function
rt_hw_context_switch_to:        # a0: where the stack pointer of the thread is
    LOAD sp, 0(a0)
leave:
    LOAD t0, WORD*32(sp)
    csrw mstatus, t0
    LOAD t0, 0(sp)
    csrw mepc, t0
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    LOAD x\n, WORD*\n(sp)
    .endr
    addi sp, sp, FRAME
    mret
    .size rt_hw_trap_entry, .-rt_hw_trap_entry
