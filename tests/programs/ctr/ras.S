# RAS emulation: calls within calls, recursion deeper than the array, co-routines, a return too many, a stack that is
# switched, and traps on the way. M mode only.
#include "ctr.h"
    .section .text.start
    .option norelax
    .option norvc
    .globl _start
_start:
    la   sp, stack_top
    la   t0, trap
    csrw mtvec, t0

    ctr_clear 16
    ctr_on CTR_M|CTR_RASEMU
    look empty
    call outer
    look back
    li   a0, 5
    call recursive
    li   a0, 30
    call recursive
    look deep_back
    la   t2, with_swap
    jalr t2
    look swap_back
    call with_trap
    ctr_off
    look off

# A return more than there were calls, then a call
    ctr_clear 16
    ctr_on CTR_M|CTR_RASEMU
    la   ra, 1f
    ret
    nop
1:  call leaf
    look underflow
    la   t0, 1f
    jalr ra, 0(t0)              # a swap with nothing to swap with
    nop
1:  look swap_empty
    ctr_off

# Calls and jumps that are none, filters that do not count here, and frozen
    ctr_clear 16
    ctr_on CTR_M|CTR_RASEMU|0xff3f<<32
    call jumps
    look filtered
    ctr_write CTR_STATUS, (1 << 31 | 1 << 15)
    call jumps
    look frozen
    ctr_write CTR_STATUS, 0
    ctr_off
    ctr_on CTR_M|CTR_RASEMU
    call long_jump
landed:
    look long_jump
    call leaf
    look after_long_jump
    ctr_off
    .globl done
done:
    j    done

    .macro enter
    addi sp, sp, -16
    sd   ra, 0(sp)
    .endm
    .macro leave
    ld   ra, 0(sp)
    addi sp, sp, 16
    ret
    .endm

outer:
    enter
    call middle
    look outer
    call leaf
    la   t2, middle
    jalr t2
    leave
middle:
    enter
    call leaf
    look middle
    jal  t0, other_leaf
    leave
leaf:
    nop
    ret
other_leaf:
    look leaf
    jr   t0

recursive:
    enter
    addi a0, a0, -1
    blez a0, 1f
    call recursive
    leave
1:  li   t0, 1
    addi s2, s2, 1
    beq  s2, t0, 2f
    look deep
    leave
2:  look shallow
    leave

with_swap:
    enter
    la   t0, co_routine
    jalr ra, 0(t0)
back_from_swap:
    look swapped
    leave
co_routine:
    call leaf
    look co_routine
    la   ra, back_from_swap
    la   t0, back_from_swap
    jalr ra, 0(t0)

with_trap:
    enter
    ecall
    call leaf
    ebreak
    look trapped
    leave

jumps:
    mv   s3, ra
    j    1f
    nop
1:  beq  zero, zero, 1f
    nop
1:  la   t2, 1f
    jr   t2
    nop
1:  jal  t1, 1f
    nop
1:  look jumps
    jr   s3

long_jump:
    enter
    call 1f
1:  addi sp, sp, 16
    la   t1, landed
    jr   t1

    .balign 4
trap:
    addi sp, sp, -16
    sd   ra, 0(sp)
    csrr t1, mepc
    addi t1, t1, 4
    csrw mepc, t1
    call leaf
    ld   ra, 0(sp)
    addi sp, sp, 16
    mret

    .section .bss
    .balign 16
    .space 4096
stack_top:
