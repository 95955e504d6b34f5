/* Calls, recursion, a jump table, an ecall, an illegal instruction and a timer interrupt in each of three rounds; a debugger
 * stops in stop_here(). Linked with examples/two_harts/start.S. */
#include <stdint.h>

#define MTIMECMP (*(volatile uint64_t *)0x02004000)
#define MTIME (*(volatile uint64_t *)0x0200bff8)

volatile unsigned ticks, result;

__attribute__((interrupt("machine"), aligned(4))) static void handler(void) {
    uintptr_t cause, epc;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    if ((intptr_t)cause < 0) {
        MTIMECMP = ~0ull;
        ticks++;
        return;
    }
    __asm__ volatile("csrr %0, mepc" : "=r"(epc));
    epc += (*(const uint16_t *)epc & 3) == 3 ? 4 : 2;
    __asm__ volatile("csrw mepc, %0" ::"r"(epc));
}

__attribute__((noinline)) static unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__attribute__((noinline)) unsigned chosen(unsigned n) {
    switch (n % 6) {
    case 0: return n;
    case 1: return n * 7;
    case 2: return n ^ 0x5a5a;
    case 3: return n - 12345;
    case 4: return ~n;
    default: return n | 1;
    }
}

__attribute__((noinline)) void stop_here(void) { __asm__ volatile("" ::: "memory"); }

int main(unsigned hart) {
    __asm__ volatile("csrw mtvec, %0" ::"r"(handler));
    MTIMECMP = ~0ull;
    __asm__ volatile("csrw mie, %0\ncsrsi mstatus, 8" ::"r"(1 << 7));
    for (unsigned round = 0; round < 3; round++) {
        unsigned before = ticks;
        MTIMECMP = MTIME + 60;
        result += fib(5 + round);
        for (unsigned i = 0; i < 8; i++) result += chosen(result + i);
        __asm__ volatile("ecall");
        __asm__ volatile(".half 0");
        while (ticks == before) {}
        stop_here();
    }
    for (;;) {}
}
