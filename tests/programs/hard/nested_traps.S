# User code with ecalls, illegal instructions and timer interrupts; the machine-mode handler itself traps, and many a trap
# is taken right after mret. After 25 rounds the handler ends the program.
#if __riscv_xlen == 64
#define LOAD ld
#define STORE sd
#else
#define LOAD lw
#define STORE sw
#endif
    .option norelax
    .globl main
main:
    la t0, handler
    csrw mtvec, t0
    la t0, stack_end
    csrw mscratch, t0
    li s1, 0
    li t0, 0x02004000
    li t1, 200
    sw t1, 0(t0)
    sw zero, 4(t0)
    li t0, 0x80
    csrw mie, t0
    csrs mstatus, t0        # MPIE
    li t0, 0x1800
    csrc mstatus, t0        # MPP: user
    la t0, user
    csrw mepc, t0
    mret

    .globl user
user:
    ecall
    ecall
    j 1f
1:  ecall
    addi s1, s1, 1
    andi t2, s1, 3
    beqz t2, 1b
    csrr t0, mstatus        # illegal here
    la t0, 2f
    jr t0
2:  ecall
    li t3, 20
3:  addi t3, t3, -1
    bnez t3, 3b
    jal leaf
    li t2, 25
    blt s1, t2, user
    li a0, 93
    ecall
leaf:
    andi t0, s1, 1
    beqz t0, 1f
    ecall
1:  ret

    .balign 4
    .globl handler
handler:
    csrrw sp, mscratch, sp
    addi sp, sp, -32
    STORE t0, 0(sp)
    STORE t1, 24(sp)
    csrr t0, mcause
    bltz t0, interrupt
    li t1, 93
    beq a0, t1, finish
    csrr t1, mepc
    addi t1, t1, 4          # what traps here has four bytes
    STORE t1, 8(sp)
    csrr t0, mstatus
    sw t0, 16(sp)
    la t0, inner_handler
    csrw mtvec, t0
    ecall
    ecall
    la t0, handler
    csrw mtvec, t0
    lw t0, 16(sp)
    csrw mstatus, t0
    LOAD t1, 8(sp)
    csrw mepc, t1
leave:
    LOAD t0, 0(sp)
    LOAD t1, 24(sp)
    addi sp, sp, 32
    csrrw sp, mscratch, sp
    mret
interrupt:
    li t0, 0x0200bff8       # the next one 37 ticks on
    lw t1, 0(t0)
    addi t1, t1, 37
    li t0, 0x02004000
    sw t1, 0(t0)
    j leave
    .globl finish
finish:
    li a0, 0
    j _exit

    .balign 4
    .globl inner_handler
inner_handler:
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret

    .bss
    .balign 16
    .space 256
stack_end:
