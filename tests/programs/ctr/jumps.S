# Every kind of jump and branch, in every filter. M mode only.
#include "ctr.h"
    .section .text.start
    .option norelax
    .option norvc
    .globl _start
_start:
    la   sp, stack_top

# Everything that is recorded by default; then each transfer type filter alone, all of them, and none of the modes.
    ctr_clear 64
    ctr_on CTR_M, 64
    jal  s0, exercise
    look all
    ctr_off 64

    .irp bit, 33, 34, 35, 36, 37, 40, 41, 42, 43, 44, 45, 46, 47
    ctr_clear 64
    ctr_on (CTR_M | 1 << \bit), 64
    jal  s0, exercise
    look filter_\bit
    ctr_off 64
    look closed_\bit
    .endr

    ctr_clear 64
    ctr_on (CTR_M | 0xff2f << 32), 64
    jal  s0, exercise
    look none
    ctr_off 64
    ctr_clear 64
    ctr_on (CTR_M | 0xff3f << 32), 64
    jal  s0, exercise
    look not_taken
    ctr_off 64
    ctr_clear 64
    ctr_on CTR_U, 64
    jal  s0, exercise
    look other_mode
    ctr_off 64
    ctr_clear 64
    ctr_on CTR_M, 64
    ctr_write CTR_STATUS, (1 << 31 | 1 << 15)
    jal  s0, exercise
    look frozen
    ctr_off 64
    ctr_write CTR_STATUS, 5
    ctr_on CTR_M, 64
    jal  s0, exercise
    look thawed
    ctr_off 64
    .globl done
done:
    j    done

# jalr with each kind of rd and rs: x1 and x5 are link registers. \rs holds where it goes.
    .macro through rd, rs
    la   \rs, 9f
    jalr \rd, 0(\rs)
    nop
9:
    .endm

exercise:
    .irp rd, x0, x1, x5, x6
    .irp rs, x1, x5, x7
    through \rd, \rs
    .endr
    jal  \rd, 8f
    nop
8:
    .endr
    la   t2, 9f - 8
    jalr t1, 8(t2)
    nop
9:
# branches, each taken and not
    li   t0, 1
    .irp op, beq, bge, bgeu
    \op  t0, t0, 9f
    nop
9:  \op  zero, t0, 9f
    nop
9:
    .endr
    .irp op, bne, blt, bltu
    \op  zero, t0, 9f
    nop
9:  \op  t0, t0, 9f
    nop
9:
    .endr
# a loop
    li   t0, 3
1:  addi t0, t0, -1
    bnez t0, 1b
# calls
    call outer
    la   t2, leaf
    jalr t2
    la   t2, other_leaf
    jalr t0, 0(t2)
    jal  t0, other_leaf
# compressed
    .option rvc
    c.j  9f
    c.nop
9:  la   a5, 9f
    c.jr a5
    c.nop
    .balign 4
9:  la   a5, leaf
    c.jalr a5
    la   t0, 9f
    c.jalr t0                   # a co-routine swap
    c.nop
    .balign 4
9:  la   ra, 9f
    c.jalr ra                   # a call
    c.nop
    .balign 4
9:  la   t0, 9f
    c.jr t0                     # a return
    c.nop
    .balign 4
9:  li   a5, 0
    c.beqz a5, 9f
    c.nop
9:  c.bnez a5, 9f
    c.nop
9:  li   a5, 1
    c.bnez a5, 9f
    c.nop
9:  c.beqz a5, 9f
    c.nop
9:
    .balign 4
    .option norvc
    jr   s0

outer:
    mv   s1, ra
    call leaf
    mv   ra, s1
    ret
    .balign 4
leaf:
    nop
    ret
other_leaf:
    jr   t0

    .section .bss
    .balign 16
    .space 4096
stack_top:
