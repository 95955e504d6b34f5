# Every synchronous exception a hart with M and U mode can take, from both modes, with direct and vectored mtvec.
# The handler keeps mcause, mepc, mtval and mstatus in s2..s5 and goes on at the address in s0.
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start

# Execute the rest of the line as one instruction that traps, then go on behind it.
    .macro trapping instruction:vararg
    la s0, 9000f
    \instruction
9000:
    .endm

# Go on at 1f in U mode.
    .macro enter_user
    li t0, 0x1800
    csrc mstatus, t0
    la t0, 9001f
    csrw mepc, t0
    mret
9001:
    .endm

_start:
    la t0, handler
    csrw mtvec, t0
    li t6, 0x2000
    csrs mstatus, t6
    call exceptions
    call machine_only
    la t0, vectors
    addi t0, t0, 1
    csrw mtvec, t0
    csrr t1, mtvec
    call exceptions
    call machine_only
    la t0, handler
    csrw mtvec, t0

    # The same from U mode, and what only M mode may do.
    enter_user
    call exceptions
    trapping csrr t1, mstatus
    trapping csrw mscratch, t1
    trapping csrr t1, 0x7b0
    trapping mret
    trapping csrr t1, cycle
    trapping csrr t1, instret
    la s0, back
    ecall
back:
    # The timer interrupt is pending since reset; enabled it ends a WFI, which mstatus.MIE does not let it interrupt.
    li t0, 1 << 7
    csrw mie, t0
    wfi
    csrr t1, mip
    csrw mie, zero
    # mcounteren opens the counters to U mode, mstatus.TW closes WFI.
    li t0, 5
    csrw mcounteren, t0
    li t0, 1 << 21
    csrs mstatus, t0
    enter_user
    csrr t1, instret
    trapping csrr t1, time
    trapping wfi
    la s0, back2
    ecall
back2:
    li t0, 1 << 21
    csrc mstatus, t0
    # MPRV with MPP = U changes nothing without protection, and mret to U mode clears it.
    li t0, 1 << 17
    csrs mstatus, t0
    li t0, 0x1800
    csrc mstatus, t0
    lw t1, 0(s1)
    enter_user
    nop
    la s0, back3
    ecall
back3:
    csrr t1, mstatus
    finish

# Traps that both modes take the same way. t0..t2 are scratch, s1 points to data.
exceptions:
    la s1, data
    trapping .half 0                # the all-zero instruction
    trapping .word 0xffffffff
    trapping .word 0x0000705b       # custom-2, not there
    trapping .word 0x0000001f       # longer than 32 bits
    trapping .word 0x0e005033       # OP with a reserved funct7
    trapping .half 0x8002           # c.jr x0
#if __riscv_xlen == 64
    trapping .half 0x2001           # c.addiw x0
#else
    trapping .half 0x9c01           # c.subw
    trapping .half 0x1002           # c.slli by 32
#endif
    trapping .half 0x6101           # c.addi16sp with immediate 0
    trapping csrw cycle, t0         # read-only
    trapping csrr t0, 0x5c0         # not there
    trapping csrrs t0, mvendorid, t0
    trapping ebreak
    trapping .half 0x9002           # c.ebreak
    trapping ecall
    trapping lh t0, 1(s1)
    trapping lhu t0, 3(s1)
    trapping lw t0, 2(s1)
    trapping sh t0, 1(s1)
    trapping sw t0, 6(s1)
#if __riscv_xlen == 64
    trapping lwu t0, 1(s1)
    trapping ld t0, 4(s1)
    trapping sd t0, 12(s1)
#endif
    trapping lb t0, 16(zero)
    trapping lw t0, 16(zero)
    trapping sb t0, 16(zero)
    trapping sw t0, -8(zero)        # beyond the end of the address space
    trapping lw t0, 17(zero)        # misaligned and absent
    addi t1, s1, 2
    trapping lr.w t0, (t1)
    trapping sc.w t0, t2, (t1)
    trapping amoadd.w t0, t2, (t1)
    trapping lr.w t0, (zero)
    trapping sc.w t0, t2, (zero)
    trapping amoor.w t0, t2, (zero)
#if __riscv_xlen == 64
    addi t1, s1, 4
    trapping lr.d t0, (t1)
    trapping sc.d t0, t2, (t1)
    trapping amomax.d t0, t2, (t1)
#endif
    li t1, 0x60000000
    trapping jr t1                  # nothing to fetch there
    trapping jalr t1, t1, 1
    li t1, 0x60000000
    trapping jalr t0, 0(t1)
    # Registers a trapping instruction must not have written.
    li t0, 77
    trapping lw t0, 16(zero)
    trapping lh t0, 1(s1)
    sb t0, 3(s1)
    ret

# mepc and mcause keep what is written, as far as it is legal; the trap handler's own registers come back.
machine_only:
    li t0, -1
    csrw mepc, t0
    csrr t1, mepc
    csrw mcause, t0
    csrr t1, mcause
    csrw mtval, t0
    csrr t1, mtval
    csrw mscratch, t0
    csrrc t1, mscratch, 5
    csrrsi t1, mscratch, 4
    csrrwi t1, mscratch, 9
    csrrci zero, mscratch, 1
    csrr t1, mscratch
    ret

    .balign 256
vectors:
    .rept 16                        # exceptions go to the base, interrupts to base + 4 * cause
    j handler
    .endr

    .balign 4
handler:
    csrr s2, mcause
    csrr s3, mepc
    csrr s4, mtval
    csrr s5, mstatus
    csrw mepc, s0
    andi t3, s2, 15
    li t4, 8                        # ecall from U mode returns to M mode
    bne t3, t4, 1f
    la t4, back
    beq s0, t4, 2f
    la t4, back2
    beq s0, t4, 2f
    la t4, back3
    bne s0, t4, 1f
2:  jr s0
1:  mret

    .data
    .balign 16
data: .dword 0x1122334455667788, 0x99aabbccddeeff00
