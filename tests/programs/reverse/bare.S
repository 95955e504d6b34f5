# Functions without line information.
    .text
    .globl bare
    .type bare, @function
bare:
    addi a0, a0, 3
    slli a0, a0, 1
    andi a0, a0, 0x7ff
    ret
    .size bare, . - bare

# int bare_calls(int (*function)(int), int value): calls back into code that has lines
    .globl bare_calls
    .type bare_calls, @function
bare_calls:
    addi sp, sp, -16
    sw   ra, 0(sp)
    .if __riscv_xlen == 64
    sd   ra, 0(sp)
    .endif
    mv   a5, a0
    mv   a0, a1
    jalr a5
    .if __riscv_xlen == 64
    ld   ra, 0(sp)
    .else
    lw   ra, 0(sp)
    .endif
    addi sp, sp, 16
    ret
    .size bare_calls, . - bare_calls
