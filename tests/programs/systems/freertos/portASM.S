# The handler of all traps, in direct mode. A frame of 34 words goes to the stack of the task, and its address to the
# first word of the task's TCB (pxTopOfStack); the rest runs on the stack of interrupts, which may nest.
#include "word.h"
#define FRAME (34 * WORD)

.macro RESTORE_AND_RETURN
    LOAD t0, WORD*32(sp)
    csrw mstatus, t0
    LOAD t0, 0(sp)
    csrw mepc, t0
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    LOAD x\n, WORD*\n(sp)
    .endr
    addi sp, sp, FRAME
    mret
.endm

    .text
    .globl xPortStartFirstTask
    .type xPortStartFirstTask, @function
xPortStartFirstTask:
    LOAD t1, pxCurrentTCB
    LOAD sp, 0(t1)
    RESTORE_AND_RETURN
    .size xPortStartFirstTask, .-xPortStartFirstTask

    .balign 4
    .globl freertos_risc_v_trap_handler
    .type freertos_risc_v_trap_handler, @function
freertos_risc_v_trap_handler:
    addi sp, sp, -FRAME
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    STORE x\n, WORD*\n(sp)
    .endr
    csrr t0, mstatus
    STORE t0, WORD*32(sp)
    csrr s0, mepc
    STORE s0, 0(sp)
    la s1, uxInterruptNesting
    LOAD t0, 0(s1)
    addi t1, t0, 1
    STORE t1, 0(s1)
    bnez t0, call_handler
    LOAD t1, pxCurrentTCB
    STORE sp, 0(t1)
    mv s0, sp
    LOAD sp, xISRStackTop
call_handler:
    csrr a0, mcause
    call uxPortTrap
    LOAD t0, 0(s1)
    addi t0, t0, -1
    STORE t0, 0(s1)
    bnez t0, restore
    LOAD t1, 0(s0)
    add t1, t1, a0
    STORE t1, 0(s0)
    LOAD t1, pxCurrentTCB
    LOAD sp, 0(t1)
restore:
    RESTORE_AND_RETURN
    .size freertos_risc_v_trap_handler, .-freertos_risc_v_trap_handler
