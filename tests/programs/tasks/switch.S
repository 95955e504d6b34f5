# Both ways to switch tasks: by ret (swap_to), and by mret (on_trap).
    .text
    .globl swap_to
    .type swap_to, @function
swap_to:                        # a0: where to keep this task, a1: the one that goes on
    .cfi_startproc
    sd ra, 0(a0)
    sd sp, 8(a0)
    sd s0, 16(a0)
    sd s1, 24(a0)
    ld ra, 0(a1)
    ld sp, 8(a1)
    ld s0, 16(a1)
    ld s1, 24(a1)
    ret
    .cfi_endproc
    .size swap_to, .-swap_to

    .globl on_trap
    .type on_trap, @function
    .balign 4
on_trap:                        # all registers to the stack of the task, then another one's from its stack
    addi sp, sp, -264
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd x\n, 8*\n(sp)
    .endr
    csrr t0, mepc
    sd t0, 0(sp)
    csrr t0, mstatus
    sd t0, 256(sp)
    mv a0, sp
    .weak schedule
    call schedule
    mv sp, a0
    ld t0, 256(sp)
    csrw mstatus, t0
    ld t0, 0(sp)
    csrw mepc, t0
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ld x\n, 8*\n(sp)
    .endr
    addi sp, sp, 264
    mret
    .size on_trap, .-on_trap
