# For harts without compressed instructions: jumps to addresses that are not a multiple of 4.
#include "hart.inc"
    .option norvc
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    la t0, handler
    csrw mtvec, t0
    li a0, 1
    li a1, 2
    la a2, even
    # Encoded by hand, the assembler refuses: jal ra, +6; beq zero, zero, +6; bne a0, a1, +10; beq a0, a1, +6 (not taken)
    .word 0x006000ef
    .word 0x00000363
    .word 0x00b51563
    .word 0x00b50363
    addi a2, a2, 2
    jalr ra, 0(a2)
    jalr ra, 1(a2)
    jalr a2, 4(a2)
    jalr a2, -2(a2)
    nop
even:
    nop
    # mepc reads with bit 1 clear
    li t0, -1
    csrw mepc, t0
    csrr t1, mepc
    csrr t1, misa
    .word 0x00010001                # two c.nops: illegal here
    la t0, after
    addi t0, t0, 2
    csrw mepc, t0
    mret
after:
    finish

    .balign 4
handler:
    csrr s2, mcause
    csrr s3, mepc
    csrr s4, mtval
    addi s3, s3, 4
    csrw mepc, s3
    mret
