# Writes by semihosting, three times; then an ebreak of its own, which traps; then ends the run by semihosting, or, where
# nobody serves that, by the test device.
    .text
    .globl main
main:
    la t0, handler
    csrw mtvec, t0
    li s0, 3
1:  li a0, 4                    # SYS_WRITE0
    la a1, text
    call semi
    addi s0, s0, -1
    bnez s0, 1b
    .option push
    .option norvc
    ebreak                      # not between the two instructions of a call
    .option pop
    li a0, 0x20                 # SYS_EXIT_EXTENDED
    la a1, block
    call semi
    li t0, 0x100000             # the test device
    li t1, 0x5555
    sw t1, 0(t0)
    .globl finish
finish: j finish
    .balign 4
handler:
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret
    .balign 16
    .globl semi
    .type semi, @function
semi:
    .option push
    .option norvc
    slli x0, x0, 0x1f
    ebreak
    srai x0, x0, 7
    .option pop
    ret
    .section .rodata
text: .asciz "hello\n"
    .balign 8
block:
    .dc.a 0x20026, 0            # ADP_Stopped_ApplicationExit
