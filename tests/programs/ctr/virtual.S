# Traps and trap returns between VU, VS, S (HS) and M mode, in combinations of the modes that are enabled and of external
# traps. The hart needs the H extension.
#include "ctr.h"
    .section .text.start
    .option norelax
    .option norvc
    .equ hstatus, 0x600
    .equ hedeleg, 0x602
    .equ vsstatus, 0x200
    .equ vstvec, 0x205
    .globl _start
_start:
    la   t0, trap_m
    csrw mtvec, t0
    la   t0, trap_s
    csrw stvec, t0
    la   t0, trap_vs
    csrw vstvec, t0
    li   t0, -1
    csrw pmpaddr0, t0
    li   t0, 0x1f
    csrw pmpcfg0, t0
    li   t0, 1 << 3 | 1 << 8 | 1 << 10  # breakpoints and ecalls of VU and VS mode go to S mode
    csrw medeleg, t0
    li   t0, 1 << 3                     # breakpoints on to VS mode
    csrw hedeleg, t0

    .altmacro
    .set number, 0
    .macro phase name, number, value, virtual
    ctr_clear 64
    ctr_write CTR_VS_CONTROL, \virtual
    ctr_on \value, 64
    jal  s0, exercise
    look \name\()_\number
    ctr_off 64
    .endm
    .macro with name, modes, virtual
    .set number, number + 1
    phase \name, %number, (\modes), (\virtual)
    .endm
    .irp modes, 0, CTR_M, CTR_S, CTR_U, CTR_M+CTR_S, CTR_M+CTR_U, CTR_S+CTR_U, CTR_ALL
    .irp virtual, 0, CTR_S, CTR_U, CTR_S+CTR_U
    with enabled, \modes, \virtual
    with open, \modes+CTR_MTE+CTR_STE, \virtual+CTR_STE
    .endr
    .endr
    .irp external, 0, CTR_MTE, CTR_STE, CTR_MTE+CTR_STE
    with vu, \external, CTR_U
    with vu_ste, \external, CTR_U+CTR_STE
    with vs, \external, CTR_S
    with vs_ste, \external, CTR_S+CTR_STE
    .endr
    .irp control, CTR_TRET, CTR_BPFRZ
    with host, CTR_ALL+\control, CTR_S+CTR_U
    with guest, CTR_ALL, CTR_S+CTR_U+\control
    .endr
    .irp control, CTR_EXC, CTR_RASEMU
    with out_host, CTR_ALL+\control, CTR_S+CTR_U
    with out_guest, CTR_ALL, CTR_S+CTR_U+\control
    .endr
    .globl done
done:
    j    done

# From M mode to VU, VS, VU and back. a7 says what an ecall or an illegal instruction wants.
exercise:
    li   a7, 0
    li   t0, 3 << 11
    csrc mstatus, t0
    li   t0, 1 << 39                    # MPV
    csrs mstatus, t0
    la   t0, guest_user
    csrw mepc, t0
    mret
guest_user:
    j    1f
    nop
1:  ebreak                              # to VS
    beq  zero, zero, 1f
    nop
1:  ecall                               # to HS
    jal  ra, 1f
    nop
1:  .4byte 0xffffffff                   # to M
    li   a7, 1
    ecall                               # to HS, which returns to VS
guest:
    li   a7, 0
    j    1f
    nop
1:  ebreak                              # to VS
    ecall                               # to HS
    jal  ra, 1f
    nop
1:  .4byte 0xffffffff                   # to M
    li   t0, 1 << 8
    csrc sstatus, t0
    la   t0, guest_user_again
    csrw sepc, t0
    sret
guest_user_again:
    li   a7, 2
    .4byte 0xffffffff

    .balign 4
trap_m:
    csrr s7, mepc
    addi s7, s7, 4
    csrw mepc, s7
    bnez a7, to_m
    mret
to_m:
    li   s7, 1 << 39
    csrc mstatus, s7
    jr   s0

    .balign 4
trap_s:
    csrr s7, sepc
    addi s7, s7, 4
    csrw sepc, s7
    beqz a7, 1f
    li   s7, 1 << 8
    csrs sstatus, s7
1:  sret

    .balign 4
trap_vs:
    csrr s7, sepc
    addi s7, s7, 4
    csrw sepc, s7
    sret
