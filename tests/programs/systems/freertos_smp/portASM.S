# The handler of all traps, and the start of the first task of each core. A frame of 32 words goes to the stack of the
# task, and its address to the first word of the task's TCB (pxTopOfStack); the rest runs on the stack of the core for
# interrupts: as soon as the locks are free another core may go on with the task that waits.
#include "word.h"
#define FRAME (32 * WORD) /* mepc, ra, mstatus, x5 to x31 each at its number */
#if __riscv_xlen == 64
#define WORD_BITS 3
#else
#define WORD_BITS 2
#endif

.macro CURRENT register, other  # the TCB of what this core runs
    csrr \other, mhartid
    slli \other, \other, WORD_BITS
    la \register, pxCurrentTCBs
    add \register, \register, \other
    LOAD \register, 0(\register)
.endm

.macro RESTORE_AND_RETURN
    CURRENT t1, t0
    LOAD sp, 0(t1)
    LOAD t0, 0(sp)
    csrw mepc, t0
    LOAD t0, 2*WORD(sp)
    csrw mstatus, t0
    LOAD ra, WORD(sp)
    .irp n, 5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    LOAD x\n, WORD*\n(sp)
    .endr
    addi sp, sp, FRAME
    mret
.endm

    .text
    .globl xPortStartFirstTask
    .type xPortStartFirstTask, @function
xPortStartFirstTask:
    RESTORE_AND_RETURN
    .size xPortStartFirstTask, .-xPortStartFirstTask

    .globl vPortYield
    .type vPortYield, @function
vPortYield:
    ecall
    ret
    .size vPortYield, .-vPortYield

    .balign 4
    .globl freertos_risc_v_trap_handler
    .type freertos_risc_v_trap_handler, @function
freertos_risc_v_trap_handler:
    addi sp, sp, -FRAME
    STORE ra, WORD(sp)
    .irp n, 5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    STORE x\n, WORD*\n(sp)
    .endr
    csrr a0, mcause
    csrr t0, mepc
    bltz a0, interrupted
    addi t0, t0, 4              # behind the ecall
interrupted:
    STORE t0, 0(sp)
    csrr t0, mstatus
    STORE t0, 2*WORD(sp)
    CURRENT t1, t0
    STORE sp, 0(t1)
    la sp, xISRStackTops
    csrr t0, mhartid
    slli t0, t0, WORD_BITS
    add sp, sp, t0
    LOAD sp, 0(sp)
    call freertos_risc_v_application_trap
    RESTORE_AND_RETURN
    .size freertos_risc_v_trap_handler, .-freertos_risc_v_trap_handler
