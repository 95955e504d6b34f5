# Writes to CSRs that stand for others, or that others stand for: in M-mode, without and with delegation, and in S-mode.

        .option norvc
        .globl  _start
_start:
        csrw    mideleg, zero
        csrw    mie, zero
        csrw    mip, zero
        csrw    mstatus, zero
        li      t1, 0xfff
        li      t2, 0x222
        li      t4, -1

        csrw    mie, t1
        csrs    sie, t1
        csrc    sie, t1
        csrw    sie, t1
        csrw    sie, zero
        csrsi   sie, 2
        csrr    a0, sie
        csrsi   sie, 0
        csrs    sip, t1
        csrwi   sip, 2

        csrw    mideleg, t2
        csrw    mie, zero
        csrs    sie, t1
        csrci   sie, 2
        csrsi   sip, 2
        csrw    sip, zero
        csrwi   mip, 2
        csrs    mip, t2
        csrci   sip, 2
        csrsi   sip, 2
        csrr    a0, sip
        csrr    a0, mip
        csrc    mip, t2
        csrw    mideleg, zero
        csrwi   sip, 2
        csrw    sie, t1

        csrs    sstatus, t4
        csrc    sstatus, t4
        csrw    mstatus, t4
        csrw    sstatus, zero
        csrs    sstatus, zero
        csrw    mstatus, zero
        li      t5, 0x2000
        csrs    sstatus, t5
        csrwi   fflags, 3
        csrw    frm, zero
        csrwi   frm, 2
        csrw    fcsr, t4
        csrs    fcsr, zero
        csrw    fcsr, zero
        li      t5, 0x4000
        csrc    mstatus, t5             # FS from Dirty to Initial
        csrsi   fcsr, 0
        csrsi   fcsr, 1
        csrw    mcounteren, t1
        csrw    mcountinhibit, t1
        csrw    mhpmcounter3, t1
        csrw    mhpmevent3, t1
        csrw    mscratch, t1
        csrw    stvec, zero
        csrw    medeleg, t1

        csrw    mideleg, t2
        csrw    mstatus, zero
        li      t0, 1 << 11             # MPP: S
        csrs    mstatus, t0
        la      t0, supervisor
        csrw    mepc, t0
        mret
supervisor:
        csrw    sie, t1
        csrci   sie, 2
        csrsi   sip, 2
        csrci   sip, 2
        csrs    sstatus, t4
        csrw    sscratch, t1
1:      j       1b
