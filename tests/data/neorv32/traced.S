# A program for NEORV32 that traces itself: calls, loops, recursion, a jump table, ecall, an illegal instruction, a timer
# interrupt in between. It starts TRACER, works, stops it, and prints every pair in hexadecimal, SRC then DST, on UART0.
    .ifndef STOP_AT
    .set STOP_AT, -1
    .endif
    .option norvc
    .section .text.start, "ax"
    .globl _start
_start:
    la sp, stack_top
    la t0, on_trap
    csrw mtvec, t0
    li s0, 0xfff30000           # TRACER
    li s1, 0xfff50000           # UART0
    li t0, 3                    # EN, SIM_MODE
    sw t0, 0(s1)
    li t0, 1
    sw t0, 0(s0)                # CTRL: EN
    li t0, STOP_AT
    sw t0, 4(s0)                # STOP_ADDR: off, unless the assembler is told another STOP_AT
    li t2, 0xfff44000           # mtimecmp: soon
    li t0, 0xfff4bff8
    lw t1, 0(t0)
    addi t1, t1, 700
    sw t1, 0(t2)
    sw zero, 4(t2)
    li t0, 1 << 7
    csrw mie, t0
    csrsi mstatus, 8
    li t0, 5                    # START, EN
    sw t0, 0(s0)
begin_work:
    call work
end_work:
    li t0, 9                    # STOP, EN
    sw t0, 0(s0)
    csrci mstatus, 8
print_all:
    lw t0, 0(s0)
    andi t0, t0, 1 << 5         # AVAIL
    beqz t0, done
    lw a0, 8(s0)
    call print
    lw a0, 12(s0)
    call print
    li t0, '\n'
    sw t0, 4(s1)
    j print_all
done:
    wfi
    j done

print:                          # a0 in hexadecimal, and a blank
    li t1, 28
1:  srl t2, a0, t1
    andi t2, t2, 15
    li t3, 10
    blt t2, t3, 2f
    addi t2, t2, 'a' - '0' - 10
2:  addi t2, t2, '0'
    sw t2, 4(s1)
    addi t1, t1, -4
    bgez t1, 1b
    li t2, ' '
    sw t2, 4(s1)
    ret

    .option rvc
    .text
    .balign 4
work:
    addi sp, sp, -16
    sw ra, 12(sp)
    li a0, ROUNDS
    call fib
    li s2, 0
1:  mv a0, s2
    call select
    addi s2, s2, 1
    li t0, 6
    blt s2, t0, 1b
    ecall
    .2byte 0                    # an illegal instruction
    li a0, 40
2:  addi a0, a0, -1
    bnez a0, 2b
    lw ra, 12(sp)
    addi sp, sp, 16
    ret

fib:
    li t0, 2
    blt a0, t0, 1f
    addi sp, sp, -16
    sw ra, 12(sp)
    sw a0, 8(sp)
    addi a0, a0, -1
    call fib
    sw a0, 4(sp)
    lw a0, 8(sp)
    addi a0, a0, -2
    call fib
    lw t0, 4(sp)
    add a0, a0, t0
    lw ra, 12(sp)
    addi sp, sp, 16
1:  ret

select:
    li t0, 3
    bgeu a0, t0, other
    la t1, table
    slli t2, a0, 2
    add t2, t2, t1
    lw t2, 0(t2)
    jr t2
zero_case:
    li a0, 10
    ret
one_case:
    li a0, 20
    ret
two_case:
    li a0, 30
    j three
other:
    addi a0, a0, 7
three:
    ret

    .balign 4
on_trap:
    csrw mscratch, t0
    csrr t0, mcause
    bltz t0, 1f
    csrr t0, mepc
    addi t0, t0, 2
    csrw mepc, t0
    csrr t0, mcause
    addi t0, t0, -11            # ecall has 4 bytes, the illegal instruction 2
    bnez t0, 2f
    csrr t0, mepc
    addi t0, t0, 2
    csrw mepc, t0
    j 2f
1:  li t0, 0xfff44000
    sw t0, 4(t0)                # mtimecmp: never again
2:  csrr t0, mscratch
    mret

    .section .rodata
    .balign 4
table:
    .word zero_case, one_case, two_case

    .bss
    .balign 16
ticks:
    .space 16
    .space 1024
stack_top:
