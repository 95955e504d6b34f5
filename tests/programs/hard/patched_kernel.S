# Firmware, a kernel that changes its own code as Linux does (an alternative, a static key), and a process: M, S and U-mode.
# Each system call goes through both patched places; every fourth asks the firmware.
# The simulated hart has no S-mode: with MACHINE the kernel is in M-mode, and there is no firmware.
#ifdef MACHINE
#define STATUS mstatus
#define EPC mepc
#define TVEC mtvec
#define RETURN mret
#define PREVIOUS 0x1800
#else
#define STATUS sstatus
#define EPC sepc
#define TVEC stvec
#define RETURN sret
#define PREVIOUS 0x100
#endif
    .option norelax
    .option norvc
    .globl main
main:
#ifndef MACHINE
    la t0, firmware
    csrw mtvec, t0
    li t0, 1 << 8           # ecall of U-mode is the kernel's
    csrw medeleg, t0
    li t0, -1
    csrw pmpaddr0, t0
    li t0, 0x1f
    csrw pmpcfg0, t0
    li t0, 0x1800
    csrc mstatus, t0
    li t0, 0x800            # MPP: supervisor
    csrs mstatus, t0
    la t0, kernel
    csrw mepc, t0
    mret

    .balign 4
    .globl firmware
firmware:
    csrr t6, mepc
    addi t6, t6, 4
    csrw mepc, t6
    addi s2, s2, 1
    mret
#endif

    .balign 4096
    .globl kernel
kernel:
    la t0, system_call
    csrw TVEC, t0
    li s1, 0
    jal serve               # as it was in the file
    la t0, alternative
    la t1, replacement
    lw t2, 0(t1)
    sw t2, 0(t0)
    lw t2, 4(t1)
    sw t2, 4(t0)
    la t0, static_key
    la t1, enabled
    lw t2, 0(t1)
    sw t2, 0(t0)
    fence.i
    .globl patched
patched:
    li t0, PREVIOUS
    csrc STATUS, t0         # to U-mode
    la t0, process
    csrw EPC, t0
    RETURN

    .balign 4
system_call:
    csrr t6, EPC
    addi t6, t6, 4
    csrw EPC, t6
    addi s1, s1, 1
    jal s11, served
    RETURN

    .balign 4096
served:
    mv s10, ra
    jal serve
    mv ra, s10
    andi t0, s1, 3
    bnez t0, 1f
#ifndef MACHINE
    ecall
#endif
1:  li t0, 200
    beq s1, t0, 2f
    jr s11
2:  jal finish
    li t0, 0x100000         # QEMU ends
    li t1, 0x5555
    sw t1, 0(t0)
    j 2b

    .globl finish
finish:
    ret

    .balign 4096
    .globl serve
serve:
    li t0, 3
alternative:
    nop
    nop
1:  addi t0, t0, -1
    bnez t0, 1b
static_key:
    nop
    andi t1, s1, 1
    beqz t1, 2f
    addi s3, s3, 1
2:  ret
slow:
    li t2, 2
3:  addi t2, t2, -1
    bnez t2, 3b
    jr ra
replacement:
    addi t0, t0, 4
    .word 0x00504263        # bgtz t0, to the next
enabled:
    .word 0x0140006f        # j, from static_key to slow

    .globl process
process:
    ecall
    addi s4, s4, 1
    andi t0, s4, 7
    bnez t0, process
    j process
