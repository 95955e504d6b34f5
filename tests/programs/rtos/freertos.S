# The switch of tasks, with the names that FreeRTOS has in its port: registers to the stack of the task, sp to the first
# word of its control block, interrupts on a stack of their own.
#if __riscv_xlen == 64
#define S sd
#define L ld
#define W 8
#else
#define S sw
#define L lw
#define W 4
#endif
    .macro save_registers
    addi sp, sp, -32*W
    S x1, 1*W(sp)
    .irp n, 5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    S x\n, \n*W(sp)
    .endr
    csrr t0, mstatus
    S t0, 2*W(sp)
    CURRENT t1
    S sp, 0(t1)
    .endm

    .macro restore_registers
    CURRENT t1
    L sp, 0(t1)
    L t0, 0(sp)
    csrw mepc, t0
    L t0, 2*W(sp)
    csrw mstatus, t0
    L x1, 1*W(sp)
    .irp n, 5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    L x\n, \n*W(sp)
    .endr
    addi sp, sp, 32*W
    .endm

#ifdef SMP
    .macro CURRENT register
    csrr \register, mhartid
    slli \register, \register, W/4 + 1
    la t2, pxCurrentTCBs
    add \register, \register, t2
    L \register, 0(\register)
    .endm
#else
    .macro CURRENT register
    L \register, pxCurrentTCB
    .endm
#endif

    .text
    .balign 4
    .globl freertos_risc_v_trap_handler
    .type freertos_risc_v_trap_handler, @function
freertos_risc_v_trap_handler:
    save_registers
    csrr a0, mcause
    csrr a1, mepc
    bltz a0, 1f
    addi a1, a1, 4                  # behind the ecall
1:  S a1, 0(sp)
    csrr t1, mhartid
    slli t1, t1, 10
    la sp, isr_stack_top
    sub sp, sp, t1
    bltz a0, 2f
#ifdef SMP
    csrr a0, mhartid
#endif
    call vTaskSwitchContext
    j 3f
2:  call interrupted
3:  restore_registers
    mret
    .size freertos_risc_v_trap_handler, . - freertos_risc_v_trap_handler

    .balign 4
    .globl xPortStartFirstTask
    .type xPortStartFirstTask, @function
xPortStartFirstTask:
    la t0, freertos_risc_v_trap_handler
    csrw mtvec, t0
    CURRENT t1
    L sp, 0(t1)
    L x1, 0(sp)                     # where the task begins
    L a0, 10*W(sp)
    addi sp, sp, 32*W
    csrsi mstatus, 8
    ret
    .size xPortStartFirstTask, . - xPortStartFirstTask

    .bss
    .balign 16
    .skip 4096
isr_stack_top:
