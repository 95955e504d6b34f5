# Processes that a kernel tells apart by scontext, and enters by sret. The hart has no S mode: firmware emulates sret.
    .text
    .globl enter
    .type enter, @function
enter:                          # a0: what the process does, a1: its scontext; comes back when it calls the kernel
    addi sp, sp, -16
    sd ra, 0(sp)
    sd s1, 8(sp)
    la s1, 1f
    csrw scontext, a1
    .globl exit_to_user
exit_to_user:
    sret
    .balign 4
1:  csrw scontext, zero
    ld ra, 0(sp)
    ld s1, 8(sp)
    addi sp, sp, 16
    ret
    .size enter, .-enter

    .globl process
    .type process, @function
process:                        # where processes begin; a0: what they do
    mv t0, a0
    jalr t0
    ecall
    .size process, .-process

    .globl on_trap
    .type on_trap, @function
    .balign 4
on_trap:                        # sret is illegal: it leads to the process. Else the process is done.
    csrr t0, mcause
    addi t0, t0, -2
    beqz t0, 1f
    csrw mepc, s1
    mret
1:  la t0, process
    csrw mepc, t0
    mret
    .size on_trap, .-on_trap

#ifdef SPARE
    .globl spare
    .type spare, @function
spare:                          # never called: sret in more places than a hart has triggers
    .rept SPARE
    nop
    sret
    .endr
    .word 0x00730013            # addi x0, x6, 7, whose upper half reads like sret, with the instruction behind it
    .half 0x1020
    .balign 4
    .size spare, .-spare
#endif
