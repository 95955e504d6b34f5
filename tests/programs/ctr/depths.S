# Each depth: part of it used, all of it, and more; and what a change of the depth does. M mode only.
#include "ctr.h"
    .section .text.start
    .option norelax
    .option norvc
    .globl _start
_start:
    .macro phase depth, times, name
    ctr_clear \depth
    li   s0, \times
    ctr_on CTR_M, \depth
1:  addi s0, s0, -1
    andi t0, s0, 1
    beqz t0, 2f
    nop
2:  bnez s0, 1b
    look d\depth\()_\name
    ctr_off \depth
    .endm

    .irp depth, 16, 32, 64, 128, 256
    phase \depth, 5, few
    phase \depth, ((\depth*2+2)/3), all
    phase \depth, (\depth*3/2+1), many
    .endr

# The write pointer in the middle of an array that was not cleared
    ctr_write CTR_STATUS, 200
    li   s0, 20
    ctr_on CTR_M|CTR_NTBREN, 256
1:  addi s0, s0, -1
    andi t0, s0, 3
    beqz t0, 2f
    nop
2:  bnez s0, 1b
    look middle
    ctr_off 256

# Entries that the program wrote itself, as software that saves and restores them does
    ctr_clear 32
    .set entry, 0
    .rept 4
    ctr_write CTR_SELECT, (0x200 + entry)
    ctr_write CTR_SOURCE, (0x80001000 + 16 * entry + 1)
    ctr_write CTR_TARGET, (0x80002000 + 16 * entry)
    ctr_write CTR_DATA, (5 + entry)
    .set entry, entry + 1
    .endr
    ctr_on CTR_M, 32
    j    1f
    nop
1:  ctr_off 32
    look written
    .globl done
done:
    j    done
