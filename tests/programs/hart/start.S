# Start-up for C programs: stack, floating point on, main.
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_top
#ifdef __riscv_flen
    li t0, 0x2000
    csrs mstatus, t0
#endif
    call main
    finish
