# A kernel in machine mode under programs in user mode: system calls that switch between two tasks, each with its own
# scontext, and a timer that interrupts both. And what no compiler writes: jumps to addresses the instruction before them
# loads, co-routines, and returns to where no call came from.
#include "hart.inc"
#ifndef PERIOD
#define PERIOD 701
#endif
    .equ SCONTEXT, 0x5a8
    .equ MCONTEXT, 0x7a8
    .equ CLINT, 0x02000000
    .equ MTIMECMP, 0x4000
    .equ MTIME, 0xbff8
    .equ FRAME, 32 * XBYTES

    .section .text.start, "ax", @progbits
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_top
    la t0, kernel_stack
    csrw mscratch, t0
    la t0, trap
    csrw mtvec, t0
    csrwi MCONTEXT, 5
    csrwi SCONTEXT, 17
    call boot                       # calls and a loop in machine mode, with interrupts off
    call set_timer
    li t0, 0x80
    csrw mie, t0
    li t0, 0x1880
    csrc mstatus, t0                # MPP: user, MPIE off: no matter, user mode can always be interrupted
    la t0, user_main
    csrw mepc, t0
    mret

    .text
boot:
    addi sp, sp, -16
    SX ra, 0(sp)
    li a0, 6
1:  call leaf
    addi a0, a0, -1
    bnez a0, 1b
    LX ra, 0(sp)
    addi sp, sp, 16
    ret
leaf:
    ret

set_timer:                          # changes t0 to t3
    li t0, CLINT + MTIME
    lw t1, 0(t0)
    addi t1, t1, PERIOD
    li t2, CLINT + MTIMECMP
    sw t1, 0(t2)
    sw zero, 4(t2)
    ret

    .balign 4
trap:
    csrrw sp, mscratch, sp
    addi sp, sp, -FRAME
    SX ra, 0(sp)
    SX t0, XBYTES(sp)
    SX t1, 2*XBYTES(sp)
    SX t2, 3*XBYTES(sp)
    csrr t0, mcause
    bltz t0, interrupt
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    csrr t0, SCONTEXT               # the other task: 17 or 4242
    li t1, 17
    bne t0, t1, 1f
    li t1, 4242
1:  csrw SCONTEXT, t1
    call leaf
    j leave
interrupt:
    call set_timer
leave:
    LX ra, 0(sp)
    LX t0, XBYTES(sp)
    LX t1, 2*XBYTES(sp)
    LX t2, 3*XBYTES(sp)
    addi sp, sp, FRAME
    csrrw sp, mscratch, sp
    mret

# unsigned system_call(unsigned): comes back with what it was given
    .globl system_call
system_call:
    .option push
    .option norvc
    ecall
    .option pop
    ret

# unsigned sequential_jumps(unsigned): there and back by addresses that are loaded right before
    .globl sequential_jumps
sequential_jumps:
    addi sp, sp, -16
    SX ra, 0(sp)
    .option push
    .option norelax
    call far_away                   # auipc ra; jalr ra
    la t2, far_away                 # auipc, addi: not sequential
    jalr t2
1:  auipc t1, 0
    jalr zero, 12(t1)               # over the next instruction
    .word 0
#if __riscv_xlen == 32
    lui t2, %hi(far_away)
    jalr ra, %lo(far_away)(t2)
#endif
    .option pop
    LX ra, 0(sp)
    addi sp, sp, 16
    .option push
    .option norelax
    tail far_away                   # auipc t1; jr t1
    .option pop

# unsigned coroutines(unsigned n): n times into a co-routine and out of it, both by swapping ra and t0
    .globl coroutines
coroutines:
    mv t3, ra
    la t0, other
1:  jalr ra, 0(t0)
    addi a0, a0, -1
    bnez a0, 1b
    jr t3
other:
    addi a1, a1, 1
    jalr t0, 0(ra)
    andi a2, a1, 3
    bnez a2, other
    nop
    j other

# unsigned misleading_return(unsigned): its callee returns past the place it was called from
    .globl misleading_return
misleading_return:
    mv t3, ra
    .option push
    .option norvc
    jal skipping
    addi a0, a0, 100
    .option pop
    addi a0, a0, 1
    jr t3
skipping:
    addi ra, ra, 4
    ret

    .section .text.far, "ax", @progbits
    .globl far_away
far_away:
    addi a0, a0, 3
    ret

    .bss
    .balign 16
    .space 512
kernel_stack:
