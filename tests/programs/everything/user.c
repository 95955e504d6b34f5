/* What runs in user mode, round after round: recursion deeper than any return stack, calls through pointers, a jump
   table, loops whose branches repeat, and what kernel.S has. -DWELL_BEHAVED leaves out what changes return addresses. */
#include <stdint.h>

typedef unsigned operation(unsigned);
unsigned system_call(unsigned);
unsigned sequential_jumps(unsigned);
unsigned coroutines(unsigned);
unsigned misleading_return(unsigned);

volatile unsigned sink;
static uint8_t buffer[256];

static unsigned plus(unsigned x) { return x + 1; }
static unsigned times(unsigned x) { return x * 3; }
static unsigned flip(unsigned x) { return x ^ 0x55; }
operation *volatile operations[] = {plus, times, flip};

__attribute__((noinline)) unsigned deep(unsigned n) { return n ? (deep(n - 1) ^ n) + 1 : 0; }

__attribute__((noinline)) unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) unsigned chosen(unsigned c)
{
    switch (c & 7) { /* dense enough for a jump table */
    case 0: sink = 3; return '0';
    case 1: sink += 5; return c * 3;
    case 2: sink ^= 9; return ' ' + c;
    case 3: sink = c << 2; return c << 3;
    case 4: return sink;
    case 5: sink -= 4; return c ^ 0x55;
    case 6: return c / 3;
    default: return sink & c;
    }
}

__attribute__((noinline)) void fill(uint8_t *to, unsigned value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = value;
}

__attribute__((noinline)) unsigned alternating(unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i & 1)
            sum += buffer[i & 255];
        else
            sum ^= i;
    }
    return sum;
}

__attribute__((noinline)) void round_done(void) { __asm__ volatile(""); }

void user_main(void)
{
    for (unsigned round = 1;; round++) {
        unsigned sum = fibonacci(5);
        sum += deep(40);
        for (unsigned i = 0; i < 7; i++)
            sum = operations[i % 3](sum) + chosen(sum + i + round);
        fill(buffer, sum, 250);
        sum += alternating(150);
        sum = system_call(sum);
        sum = sequential_jumps(sum);
        sum = system_call(sum);
        /* one more, so that both tasks get every part of it */
        if (round & 1)
            sum = system_call(sum);
#ifndef WELL_BEHAVED
        sum += coroutines(9);
        sum += misleading_return(sum);
#endif
        sink = sum;
        round_done();
    }
}
