/* Nested interrupts, recursion, tail calls, longjmp, exceptions that a handler steps over. */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MSIP (*(volatile uint32_t *)CLINT)
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))
#define MTIME (*(volatile uint64_t *)(CLINT + 0xbff8))

volatile unsigned ticks, softs, calls, sink;
static unsigned long out[14];

#define EACH_SAVED(op) \
    op " ra, 0(a0)\n" op " sp, 8(a0)\n" op " s0, 16(a0)\n" op " s1, 24(a0)\n" op " s2, 32(a0)\n" \
    op " s3, 40(a0)\n" op " s4, 48(a0)\n" op " s5, 56(a0)\n" op " s6, 64(a0)\n" op " s7, 72(a0)\n" \
    op " s8, 80(a0)\n" op " s9, 88(a0)\n" op " s10, 96(a0)\n" op " s11, 104(a0)\n"

int __attribute__((naked, noinline, returns_twice)) setjmp(unsigned long *at)
{
    __asm__(EACH_SAVED("sd") "li a0, 0\n ret\n");
}

void __attribute__((naked, noinline, noreturn)) longjmp(unsigned long *at, int value)
{
    __asm__(EACH_SAVED("ld") "mv a0, a1\n ret\n");
}

void __attribute__((noinline)) on_soft(void) { MSIP = 0; softs++; }

void __attribute__((noinline)) on_timer(void)
{
    ticks++;
    MTIMECMP = MTIME + 300 + 97 * (ticks % 5);
    if (ticks % 3 == 0)
        MSIP = 1; /* comes at once: a trap in a trap */
    __asm__ volatile("csrsi mstatus, 8");
    sink += ticks;
}

void handle(unsigned long cause)
{
    if (cause == (1UL << 63 | 7))
        on_timer();
    else if (cause == (1UL << 63 | 3))
        on_soft();
    else
        calls++;
}

#define EACH_USED(op) \
    op " ra, 0(sp)\n" op " t0, 8(sp)\n" op " t1, 16(sp)\n" op " t2, 24(sp)\n" op " a0, 32(sp)\n" \
    op " a1, 40(sp)\n" op " a2, 48(sp)\n" op " a3, 56(sp)\n" op " a4, 64(sp)\n" op " a5, 72(sp)\n" \
    op " a6, 80(sp)\n" op " a7, 88(sp)\n" op " t3, 96(sp)\n" op " t4, 104(sp)\n" op " t5, 112(sp)\n" \
    op " t6, 120(sp)\n"

void __attribute__((naked, aligned(4))) trap_entry(void)
{
    __asm__ volatile(
        "addi sp, sp, -176\n" EACH_USED("sd")
        "csrr t0, mepc\n sd t0, 128(sp)\n csrr t1, mstatus\n sd t1, 136(sp)\n"
        "csrr a0, mcause\n bltz a0, 1f\n"
        "addi t0, t0, 4\n sd t0, 128(sp)\n"
        "1: call handle\n"
        "csrci mstatus, 8\n"
        "ld t0, 128(sp)\n csrw mepc, t0\n ld t1, 136(sp)\n csrw mstatus, t1\n"
        EACH_USED("ld") "addi sp, sp, 176\n mret\n");
}

unsigned __attribute__((noinline)) fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

unsigned odd(unsigned n);
unsigned __attribute__((noinline)) even(unsigned n) { sink = n; return n == 0 ? 1 : odd(n - 1); }
unsigned __attribute__((noinline)) odd(unsigned n) { sink = n + 1; return n == 0 ? 0 : even(n - 1); }

void __attribute__((noinline)) dive(unsigned n)
{
    if (n == 0)
        longjmp(out, 1);
    dive(n - 1);
    sink = n; /* no tail call */
}

void __attribute__((noinline)) try_it(unsigned n)
{
    if (setjmp(out) == 0)
        dive(n);
    sink = n;
}

unsigned __attribute__((noinline)) leaf(unsigned n) { return n * 3 + 1; }
unsigned __attribute__((noinline)) loop(unsigned n)
{
    unsigned all = 0;
    for (unsigned i = 0; i < n; i++)
        all += leaf(i);
    return all;
}

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(trap_entry));
    MTIMECMP = MTIME + 200;
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7 | 1 << 3));
    __asm__ volatile("csrsi mstatus, 8");
    for (unsigned i = 0;; i++) {
        sink += fib(i % 6);
        sink += even(i % 7);
        try_it(i % 4);
        sink += loop(i % 9);
        if (i % 3 == 0)
            __asm__ volatile(".option push\n.option norvc\necall\n.option pop" ::: "memory");
    }
}
