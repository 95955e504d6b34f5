/* Calls by pointer, computed gotos, recursion, branches of every outcome, floating point; for ever. `once` is called in
   each round, `seldom` in every 20th. */
#include <stdint.h>

typedef unsigned op_t(unsigned);
volatile unsigned sink;
volatile double real = 1.5;

static unsigned plus(unsigned x) { return x + 1; }
static unsigned times(unsigned x) { return x * 3; }
static unsigned flip(unsigned x) { return x ^ 0x55; }
op_t *volatile operations[] = {plus, times, flip};

__attribute__((noinline)) unsigned deep(unsigned n) { return n ? deep(n - 1) + n : 0; }

__attribute__((noinline)) unsigned computed(unsigned n)
{
    static void *const places[] = {&&zero, &&one, &&two, &&three};
    unsigned sum = 0;
next:
    if (!n--)
        return sum;
    goto *places[(sum + n) & 3];
zero:
    sum += 1;
    goto next;
one:
    sum += 3;
    goto next;
two:
    sum ^= n;
    goto next;
three:
    sum += n;
    goto next;
}

__attribute__((noinline)) void branches(unsigned x)
{
    for (int i = 0; i < 32; i++)
        if (x >> i & 1)
            sink += i;
        else
            sink ^= i;
}

__attribute__((noinline)) void once(void) { sink++; }

__attribute__((noinline)) void seldom(void) { sink += 2; }

int main(void)
{
    __asm__ volatile("csrs mstatus, %0" ::"r"(0x6000)); /* FS: the floating-point unit is on */
    for (unsigned i = 0;; i++) {
        sink = operations[i % 3](sink);
        sink += computed(i % 20);
        branches(i * 2654435761u);
        deep(i % 300);
        real = real * 1.0001 + 0.5;
        once();
        if (i % 20 == 19)
            seldom();
    }
}
