# Jumps through the table of Zcmt and returns of Zcmp (written as numbers: assemblers of today do not all know them).
#include "ctr.h"
    .section .text.start
    .option norelax
    .globl _start
_start:
    la   sp, stack_top
    la   t0, table
    csrw 0x017, t0                      # jvt
    .irp name, 0, 33, 36, 41, 43, 45
    ctr_clear 16
    ctr_on (CTR_M|1<<\name)
    jal  s0, exercise
    look filter_\name
    ctr_off
    .endr
    ctr_clear 16
    ctr_on CTR_M|CTR_RASEMU
    jal  s0, exercise
    look ras
    ctr_off
    .globl done
done:
    j    done

exercise:
    .2byte 0xa002 | 1 << 2              # cm.jt 1
back:
    .2byte 0xa002 | 32 << 2             # cm.jalt 32
    .2byte 0xa002 | 33 << 2             # cm.jalt 33
    jr   s0
target:
    j    back
function:
    .2byte 0xb842                       # cm.push {ra}, -16
    nop
    .2byte 0xbe42                       # cm.popret {ra}, 16
zero:
    .2byte 0xb842                       # cm.push {ra}, -16
    nop
    .2byte 0xbc42                       # cm.popretz {ra}, 16

    .balign 64
table:
    .dword 0, target
    .fill 30, 8, 0
    .dword function, zero

    .section .bss
    .balign 16
    .space 4096
stack_top:
