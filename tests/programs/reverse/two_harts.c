/* Two harts that do different things: each has its own stack, and nothing is shared but the code. The first waits for
 * good in the end, the second comes to `finish`. */
#define NOINLINE __attribute__((noinline, noclone))

volatile int results[2];

NOINLINE int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

NOINLINE int collatz(int n)
{
    int steps = 0;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}

NOINLINE void finish(int hart, int value) { results[hart] = value; }

void work(int hart)
{
    int value = 0;
    for (int i = 0; i < 6; i++)
        value += hart ? collatz(7 + i) : fib(i);
    while (!hart) /* so that what this one runs is the same each time */
        __asm__ volatile("wfi");
    finish(hart, value);
}

__attribute__((naked)) int main(void)
{
    __asm__("csrr a0, mhartid\n slli t0, a0, 12\n sub sp, sp, t0\n j work");
}
