# Start-up for bare-metal programs on the simulated target: stack, cleared .bss, main, then "tohost" ends the program.
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_top
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call main
    .globl _exit
_exit:
    slli a0, a0, 1
    ori a0, a0, 1
    la t0, tohost
    sw a0, 0(t0)
    sw zero, 4(t0)
done:
    j done

    .section .tohost, "aw", @progbits
    .balign 64
    .globl tohost
    .type tohost, @object
    .size tohost, 8
tohost: .dword 0
