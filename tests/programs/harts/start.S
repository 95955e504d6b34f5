# Start-up of several harts: a stack of 16 KiB each, .bss cleared by hart 0 before it lets the others go on.
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    csrr a0, mhartid
    la sp, __stack_top
    slli t0, a0, 14
    sub sp, sp, t0
    la t2, released
    bnez a0, wait
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  li t0, 1
    fence w, w
    sw t0, 0(t2)
    call main
    .globl _exit
_exit:
    slli a0, a0, 1
    ori a0, a0, 1
    la t0, tohost
    sw a0, 0(t0)
    sw zero, 4(t0)
done:
    j done
wait:
    lw t0, 0(t2)
    beqz t0, wait
    fence r, rw
    call main
    j done

    .data
    .balign 4
released: .word 0

    .section .tohost, "aw", @progbits
    .balign 64
    .globl tohost
    .type tohost, @object
    .size tohost, 8
tohost: .dword 0
