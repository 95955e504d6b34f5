# Returns, by how they came to their address: taken_* from the stack of the function, other_* from elsewhere.
#if __riscv_xlen == 64
#define S sd
#define L ld
#else
#define S sw
#define L lw
#endif
    .macro begin name
    .balign 4
    .globl \name
    .type \name, @function
\name:
    .endm
    .text
begin taken_plain
    addi sp, sp, -16
    S ra, 8(sp)
    call taken_plain
    L ra, 8(sp)
    addi sp, sp, 16
    ret
begin taken_far                         # a large frame, and 32-bit encodings
    .option push
    .option norvc
    li t1, 4096
    sub sp, sp, t1
    S ra, 8(sp)
    jalr a5
    L ra, 8(sp)
    add sp, sp, t1
    ret
    .option pop
begin taken_framed                      # by the frame pointer
    addi sp, sp, -32
    S s0, 16(sp)
    addi s0, sp, 32
    addi sp, s0, -32
    L ra, -8(s0)
    L s0, 16(sp)
    addi sp, sp, 32
    ret
begin taken_millicode                   # __riscv_restore_1: its first label runs into the second
    L s1, 0(sp)
begin taken_millicode_end
    L s0, 8(sp)
    L ra, 16(sp)
    addi sp, sp, 32
    jr ra
begin taken_t0
    L t0, 0(sp)
    addi sp, sp, 16
    jr t0
begin other_leaf                        # as the call left it
    addi a0, a0, 1
    ret
begin other_set                         # to a place of its choice
    L ra, 8(sp)
    la ra, other_leaf
    ret
begin other_moved                       # behind what follows the call
    L ra, 8(sp)
    addi ra, ra, 4
    ret
begin other_beyond
    L ra, 8(sp)
    jr 4(ra)
begin other_longjmp
    L ra, 0(a0)
    L sp, 8(a0)
    ret
begin other_switch                      # the stack of another thread
    L sp, 0(a1)
    L ra, 0(sp)
    addi sp, sp, 16
    ret
begin other_switch_moved
    mv sp, a0
    L ra, 0(sp)
    ret
begin other_swap
    csrrw sp, mscratch, sp
    L ra, 0(sp)
    ret
begin other_stack                       # the label after it is no function's
    L sp, 0(a1)
begin other_restore
    L ra, 0(sp)
    addi sp, sp, 16
    ret
begin other_early                       # before this return nothing is loaded
    beqz a0, 1f
    L ra, 8(sp)
    ret
1:  ret
begin other_called                      # by a call of its own
    jal leave
leave:
    ret
    .size leave, 0
