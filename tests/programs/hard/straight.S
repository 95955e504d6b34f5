# More than 2**16 halfwords of code without a branch, a function name every 4000 instructions.
    .globl main
main:
    .altmacro
    .macro part n
    .globl part\n
    .type part\n, @function
part\n:
    .rept 4000
    addi a1, a1, 1
    .endr
    .size part\n, . - part\n
    .endm
    .set n, 0
    .rept 9
    part %n
    .set n, n + 1
    .endr
    ret
