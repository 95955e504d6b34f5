# Jumps to where no code is: unmapped memory, data, an odd address, the end of the address space; and instructions that
# trap. The handler goes on at ra. Twenty rounds, then main returns.
    .option norelax
    .globl main
main:
    addi sp, sp, -16
    sw ra, 0(sp)
    la t0, handler
    csrw mtvec, t0
    li s0, 20
round:
    la ra, 1f
    li t0, 0x1000
    jr t0
1:  la ra, 1f
    la t0, data
    jr t0
1:  la ra, 1f
    la t0, data + 5
    jr t0
1:  la ra, 1f
    li t0, -2
    jr t0
1:  la ra, 1f
    ecall
1:  la ra, 1f
    .word 0
1:  la ra, 1f
    csrr t0, 0x7ff
1:  la ra, 1f
    lw t0, 0(zero)
1:  addi s0, s0, -1
    bnez s0, round
    li a0, 0
    la ra, _exit
    ret

    .balign 4
    .globl handler
handler:
    csrr t0, mcause
    bltz t0, handler
    csrw mepc, ra
    mret

    .data
    .balign 8
data:
    .word 0, 0, 0, 0
