# Writes scontext (Sdtrig) and runs a little in each context.
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    call work
    li t0, 17
    csrw scontext, t0
    call work
    li t0, 0x2345
    csrw scontext, t0
    nop
    call work
    finish
work:
    addi a0, a0, 1
    ret
