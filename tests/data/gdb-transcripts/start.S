.section .text.init
.globl _start
_start:
  la sp, stack_top
  la t0, trap
  csrw mtvec, t0
  call main
1: j 1b
.align 2
trap: j trap
.bss
.align 4
.space 4096
stack_top:
