/* A program in user mode under a supervisor with virtual memory (Sv39 or Sv32): page faults of loads and of fetching,
 * system calls and timer interrupts, delegated (medeleg, mideleg), and calls of the supervisor to machine mode.
 * Pages come when they are missed, and go with each system call. END: how it ends, see below. */
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 12
#endif
#define NAKED __attribute__((naked, noinline, noclone))
#define NOINLINE __attribute__((noinline, noclone))
#define csrw(name, value) __asm__ volatile("csrw " #name ", %0" ::"r"((unsigned long)(value)) : "memory")
#define csrr(name) ({ unsigned long value_; __asm__ volatile("csrr %0, " #name : "=r"(value_)); value_; })

#define MTIME (*(volatile uint64_t *)0x200bff8)
#define MTIMECMP (*(volatile uint64_t *)0x2004000)
#define RAM 0x80000000ul
#define USER 0x40000000ul    /* the same memory */
#define MISSING 0xc0000000ul /* and here, now and then */
#if __riscv_xlen == 64
#define ENTRIES 512
#define SHIFT 30
#define SATP (8ul << 60)
#else
#define ENTRIES 1024
#define SHIFT 22
#define SATP (1ul << 31)
#endif
#define LEAF(physical, user) ((physical) >> 12 << 10 | 0xcf | (user) << 4)

unsigned long root[ENTRIES] __attribute__((aligned(4096))) = {1}; /* in .data: no time is lost with clearing it */
volatile unsigned long faults = 1, calls = 1, ticks = 1, user_sink = 1;
extern volatile uint32_t tohost[2];
volatile uint64_t fromhost __attribute__((section(".tohost"), aligned(64))); /* QEMU's HTIF wants both */

NOINLINE void finish(void) { calls++; }

static void end(void)
{
    finish();
#if END == 1 /* HTIF */
    fromhost = 0;
    tohost[0] = 1;
    tohost[1] = 0;
#elif END == 2 /* semihosting: SYS_EXIT */
    static unsigned long block[2] = {0x20026, 0};
    __asm__ volatile("mv a0, %0\n mv a1, %1\n .option push\n .option norvc\n .balign 16\n"
                     "slli zero, zero, 0x1f\n ebreak\n srai zero, zero, 7\n .option pop"
                     ::"r"(0x18), "r"(__riscv_xlen == 64 ? (unsigned long)block : 0x20026) : "a0", "a1");
#else /* the test device of `virt` */
    *(volatile uint32_t *)0x100000 = 0x5555;
#endif
    for (;;)
        ;
}

/* Machine mode: hands its timer on, and takes calls of the supervisor, which cannot clear that. */
__attribute__((interrupt("machine"), aligned(4))) void machine_trap(void)
{
    if ((long)csrr(mcause) < 0) {
        MTIMECMP = -1;
        __asm__ volatile("csrs mip, %0" ::"r"(1 << 5));
        return;
    }
    __asm__ volatile("csrc mip, %0" ::"r"(1 << 5));
    MTIMECMP = MTIME + 9;
    csrw(mepc, csrr(mepc) + 4);
}

__attribute__((interrupt("supervisor"), aligned(4))) void supervisor_trap(void)
{
    unsigned long cause = csrr(scause);
    if ((long)cause < 0) {
        ticks++;
        __asm__ volatile("ecall" ::: "memory");
        return;
    }
    if (cause == 8) {
        if (calls++ == ROUNDS)
            end();
        csrw(sepc, csrr(sepc) + 4);
        root[MISSING >> SHIFT] = 0;
    } else {
        faults++;
        root[csrr(stval) >> SHIFT] = LEAF(RAM, 1);
    }
    __asm__ volatile("sfence.vma" ::: "memory");
}

NOINLINE unsigned long leaf(unsigned long n) { return n * 3 + 1; }

NAKED void user(void)
{
    __asm__ volatile("1: li s0, 5\n"
                     "2: mv a0, s0\n call leaf\n addi s0, s0, -1\n bnez s0, 2b\n"
                     "add a1, s1, s2\n addi a2, a2, 1\n lw a3, 0(a1)\n addi a3, a3, 1\n" /* missing: the load */
                     "ecall\n addi a4, a4, 1\n jalr ra, 0(s3)\n"                         /* missing: where it jumps */
                     "sw a3, 0(a1)\n j 1b");
}

int main(void)
{
    root[0] = LEAF(0ul, 0);
    root[RAM >> SHIFT] = LEAF(RAM, 0);
    root[USER >> SHIFT] = LEAF(RAM, 1);
    csrw(pmpaddr0, -1l);
    csrw(pmpcfg0, 0x1f);
    csrw(mtvec, machine_trap);
    csrw(stvec, supervisor_trap);
    csrw(medeleg, 1 << 8 | 1 << 12 | 1 << 13 | 1 << 15);
    csrw(mideleg, 1 << 5);
    csrw(satp, SATP | (unsigned long)root >> 12);
    __asm__ volatile("sfence.vma" ::: "memory");
    MTIMECMP = MTIME + 9;
    csrw(mie, 1 << 7 | 1 << 5);
    csrw(mstatus, 0); /* to user mode, which has no stack: sp is that of whoever handles a trap */
    csrw(mepc, (unsigned long)user - RAM + USER);
    __asm__ volatile("mv s1, %0\n mv s2, %1\n mv s3, %2\n mret"
                     ::"r"(MISSING), "r"((unsigned long)&user_sink - RAM), "r"((unsigned long)leaf - RAM + MISSING)
                     : "s1", "s2", "s3");
    __builtin_unreachable();
}
