# Code where translation blocks end early or seem to: QEMU logs only where they begin.
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    csrr t0, mhartid
    bnez t0, other
    li s0, 20

again:                              # a block that ends behind a CSR access, then a loop that goes back there
    nop
    csrr t1, mscratch
    addi t1, t1, 3
1:  addi t1, t1, -1
    bnez t1, 1b
    nop
    csrw mscratch, zero
2:  addi t1, t1, 1
    slti t2, t1, 4
    bnez t2, 2b

    li t1, 3                        # the same without: the loop goes into the middle of its first block
    nop
3:  addi t1, t1, -1
    nop
    bnez t1, 3b
    la t2, 4f
    li t1, 3
4:  addi t1, t1, -1
    beqz t1, 5f
    jr t2
5:  fence
    fence.i
6:  addi t1, t1, 1
    slti t2, t1, 3
    bnez t2, 6b

    call crossing
    call straight
    la t0, tohost                   # a store to a device has a block of its own
    li t1, 0x02000000
    sw zero, 0(t1)
    nop
    sw zero, 0(t1)
    addi s0, s0, -1
    bnez s0, again
    finish

other:
    addi t1, t1, 1
    csrr t2, mscratch
    andi t2, t1, 3
    bnez t2, other
    j other

straight:                           # more than one block can hold
    .rept 1500
    addi a0, a0, 1
    .endr
    ret

    .balign 4096
    .option push
    .option norvc
    .space 4096 - 8
crossing:
    nop
    .option pop
    c.nop
    .option push
    .option norvc
    addi a0, a0, 1                  # half of it is in the next page
    li a1, 3
7:  addi a1, a1, -1
    bnez a1, 7b
    .option pop
    ret
