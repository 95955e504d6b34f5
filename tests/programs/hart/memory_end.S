# The last halfword of memory, at MEMORY_END - 2, holds the first half of an instruction.
#include "hart.inc"
#define MEMORY_END 0x80005000
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    la t0, handler
    csrw mtvec, t0
    li t0, MEMORY_END - 2
    li t1, 0x0013
    sh t1, 0(t0)
    fence.i
    jr t0
    .balign 4
handler:
    csrr t0, mcause
    csrr t0, mepc
    csrr t0, mtval
    # and loads that begin inside and end outside
    la t0, end
    csrw mtvec, t0
    li t0, MEMORY_END - 4
    lw t1, 0(t0)
    lw t1, 4(t0)
    .balign 4
end:
    csrr t0, mtval
    finish
