# RV32, which reaches bits 31:0 of the control register alone: depths, RAS emulation, C.JAL. M mode only.
#include "ctr.h"
    .section .text.start
    .option norelax
    .option norvc
    .globl _start
_start:
    la   sp, stack_top
    .irp depth, 16, 32
    ctr_clear \depth
    ctr_on CTR_M, \depth
    call exercise
    look d\depth
    ctr_off \depth
    .endr
    ctr_clear 16
    ctr_on CTR_M|CTR_RASEMU
    call exercise
    look ras
    ctr_off
    .globl done
done:
    j    done

exercise:
    mv   s1, ra
    li   s2, 12
1:  addi s2, s2, -1
    bnez s2, 1b
    call leaf
    .option rvc
    c.jal leaf
    .option norvc
    look inside
    jr   s1
    .balign 4
leaf:
    nop
    ret

    .section .bss
    .balign 16
    .space 4096
stack_top:
