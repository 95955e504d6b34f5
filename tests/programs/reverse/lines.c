/* What gdb's commands for source lines meet: recursion, calls through pointers, tail calls, inlined functions, several
 * calls in one line, loops in one line, code without line information, and interrupts in the middle of it all. */
#include <stdint.h>

#ifndef PERIOD
#define PERIOD 500 /* of the timer's interrupts, in its ticks */
#endif
#define NOINLINE __attribute__((noinline, noclone))
#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))
#define MTIME (*(volatile uint64_t *)(CLINT + 0xbff8))

int bare(int value); /* bare.S: nobody knows its lines */
int bare_calls(int (*function)(int), int value);

volatile unsigned ticks;
volatile int result;
volatile int table[8];

NOINLINE int leaf(int value) { return value + 1; }

NOINLINE int twice(int value)
{
    int once = leaf(value);
    return leaf(once) + once;
}

NOINLINE int sum_to(int n)
{
    if (n == 0)
        return 0;
    int rest = sum_to(n - 1);
    return rest + n;
}

NOINLINE int last_call(int value)
{
    table[1] = value;
    return twice(value ^ 1); /* a tail call where it is optimized */
}

static inline int squared(int value)
{
    int factor = value & 0xff;
    table[2] = factor;
    return factor * factor;
}

NOINLINE int mixed(int value)
{
    int all = squared(value);
    all += squared(value + 1);
    table[3] = all;
    return all;
}

NOINLINE int choose(int value)
{
    static int (*const functions[])(int) = {leaf, twice, last_call, mixed};
    return functions[value & 3](value);
}

static void __attribute__((interrupt)) __attribute__((aligned(4))) on_trap(void)
{
    ticks++;
    MTIMECMP = MTIME + PERIOD;
}

static void start_timer(void)
{
    MTIMECMP = MTIME + PERIOD;
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
    __asm__ volatile("csrsi mstatus, 8");
}

NOINLINE int round_of(int i)
{
    int sum = choose(i);
    sum += twice(leaf(i)) + leaf(sum);
    for (int k = 0; k < 3; k++) table[k] = sum + k;
    for (int k = 0; k < 2; k++)
        sum += leaf(k);
    sum = bare(sum);
    sum += bare_calls(leaf, sum);
    if (i & 1)
        sum += sum_to(i & 3);
    else
        sum -= last_call(i);
    return sum & 0xffff;
}

void finish(int value)
{
    result = value;
}

int main(void)
{
    int sum = 0;
    start_timer();
    for (int i = 0; i < 8; i++) {
        sum += round_of(i);
        sum ^= i;
    }
    finish(sum);
    for (;;)
        ;
}
