# One instruction for ever, but for a timer interrupt every 70000 ticks: what an encoder has to say is that I-CNT is full.
    .option norelax
    .globl main
main:
    la t0, handler
    csrw mtvec, t0
    li t0, 0x02004000
    li t1, 70000
    sw t1, 0(t0)
    sw zero, 4(t0)
    li t0, 0x80
    csrw mie, t0
    csrsi mstatus, 8
    li a0, 0
    .globl spin
spin:
    j spin

    .balign 4
handler:
    li t0, 0x0200bff8
    lw t1, 0(t0)
    li t2, 70000
    add t1, t1, t2
    li t0, 0x02004000
    sw t1, 0(t0)
    addi a0, a0, 1
    li t0, 2
    blt a0, t0, 1f
    .globl second
second:
    li a0, 0
1:  mret
