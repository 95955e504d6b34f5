# What no compiler writes: switching stacks in a function (switch_to), and in a trap handler (on_trap).
#if __riscv_xlen == 64
#define S sd
#define L ld
#define W 8
#else
#define S sw
#define L lw
#define W 4
#endif
    .text
    .globl switch_to
    .type switch_to, @function
switch_to:
    S ra, 0*W(a0)
    S sp, 1*W(a0)
    S s0, 2*W(a0)
    S s1, 3*W(a0)
    S s2, 4*W(a0)
    S s3, 5*W(a0)
    L sp, 1*W(a1)
    L s0, 2*W(a1)
    L s1, 3*W(a1)
    L s2, 4*W(a1)
    L s3, 5*W(a1)
    addi sp, sp, -2*W       # as some do it: the return address comes off the new stack
    L t0, 0*W(a1)
    S t0, 0(sp)
    L ra, 0(sp)
    addi sp, sp, 2*W
    ret
    .size switch_to, . - switch_to

# An environment call goes on in the other task; anything else ends what ran.
    .globl on_trap
    .type on_trap, @function
    .balign 4
on_trap:
    addi sp, sp, -16*W
    S ra, 0*W(sp)
    S t0, 1*W(sp)
    S a0, 2*W(sp)
    S a1, 3*W(sp)
    S s0, 4*W(sp)
    S s1, 5*W(sp)
    S s2, 6*W(sp)
    csrr t0, mcause
    addi t0, t0, -11
    bnez t0, 1f
    csrr t0, mepc
    addi t0, t0, 4
    S t0, 7*W(sp)
    la t0, tasks_of_traps
    L a0, 1*W(t0)
    S sp, 1*W(t0)
    mv sp, a0
    la a1, other_begun
    L a0, 0(a1)
    bnez a0, 2f
    li a0, 1
    S a0, 0(a1)
    la t0, other_task
    csrw mepc, t0
    li t0, 0x1800
    csrw mstatus, t0
    mret
2:  L t0, 7*W(sp)
    csrw mepc, t0
    li t0, 0x1800
    csrw mstatus, t0
    L ra, 0*W(sp)
    L t0, 1*W(sp)
    L a0, 2*W(sp)
    L a1, 3*W(sp)
    L s0, 4*W(sp)
    L s1, 5*W(sp)
    L s2, 6*W(sp)
    addi sp, sp, 16*W
    mret
1:  la t0, recover
    csrw mepc, t0
    li t0, 0x1800
    csrw mstatus, t0
    addi sp, sp, 16*W
    mret
    .size on_trap, . - on_trap

    .section .sbss, "aw", @nobits
    .balign 8
    .globl tasks_of_traps
tasks_of_traps: .zero 2*W
other_begun: .zero W
