/* Two harts that compute different things; the second ends QEMU when the first is done, waiting in a loop of its own. */
#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))
#define FINISHER (*(volatile uint32_t *)0x100000)

volatile int results[2];
volatile uint32_t working = 1; /* no .bss: each hart clears that when it starts */

NOINLINE int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

NOINLINE int collatz(int n)
{
    int steps = 0;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}

NOINLINE void first(void)
{
    working = 0;
    for (;;)
        __asm__ volatile("wfi");
}

NOINLINE void second(void)
{
    while (working)
        ;
    FINISHER = 0x5555;
    for (;;)
        ;
}

void work(int hart)
{
    for (int i = 0; i < 12; i++)
        results[hart] += hart ? collatz(7 + i) : fib(i);
    if (hart)
        second();
    first();
}

__attribute__((naked)) int main(void)
{
    __asm__("csrr a0, mhartid\n slli t0, a0, 12\n sub sp, sp, t0\n j work");
}
