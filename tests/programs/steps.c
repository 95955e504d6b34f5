/* What a debugger steps over one instruction at a time: loops of one line, inlined functions in each other, with calls,
   in loops of one line, recursive ones on one line and over an inlined function; traps and interrupts in between. */

#ifndef ROUNDS
#define ROUNDS 9
#endif
#define MSIP (*(volatile unsigned *)0x2000000) /* QEMU's virt board: CLINT */

volatile unsigned sink, traps;

static __attribute__((interrupt, aligned(4))) void handler(void)
{
    unsigned long cause, pc;
    __asm__ volatile("csrr %0, mcause; csrr %1, mepc" : "=r"(cause), "=r"(pc));
    if ((long)cause < 0)
        MSIP = 0;
    else
        __asm__ volatile("csrw mepc, %0" ::"r"(pc + 4)); /* ecall */
    for (int i = 0; i < 2; i++) traps++;
}

static inline __attribute__((always_inline)) unsigned inner(unsigned x)
{
    unsigned y = x << 3;
    do { y ^= x--; } while (x & 3);
    return y;
}

static inline __attribute__((always_inline)) unsigned mixed(unsigned seed, unsigned rounds)
{
    unsigned sum = seed;
    for (unsigned i = 0; i < rounds; i++) {
        sum ^= sum << 5;
        sum += i;
        if (sum & 4)
            sum ^= 0x55;
    }
    return sum;
}

static __attribute__((noinline)) unsigned one_line(unsigned n)
{
    unsigned sum = n;
    for (unsigned i = 0; i < n; i++) sum = (sum << 1) ^ i;
    return sum;
}

static __attribute__((noinline)) unsigned doing(unsigned n)
{
    unsigned sum = n;
    do { sum = (sum << 1) ^ n; } while (--n);
    return sum;
}

static __attribute__((noinline)) unsigned recursive(unsigned n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }

static inline __attribute__((always_inline)) unsigned calling(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 1; i < n; i++) {
        sum += one_line(i);
        sum ^= inner(i);
        if (i == 2)
            __asm__ volatile("ecall");
    }
    return sum;
}

static __attribute__((noinline)) unsigned nested(unsigned n)
{
    unsigned sum = n ? mixed(n, 3) : 1;
    if (n)
        sum += nested(n - 1) + inner(n);
    for (unsigned i = 0; i < 3; i++) sum ^= inner(sum + i);
    return sum;
}

static __attribute__((noinline)) unsigned inlined(unsigned n)
{
    unsigned first = n * 3;
    unsigned sum = mixed(first, n);
    sink = sum;
    return sum + first;
}

static __attribute__((noinline)) unsigned interrupted(unsigned n)
{
    for (unsigned i = 0; i < n; i++) MSIP = i & 1;
    for (unsigned i = 0; i < n; i++) __asm__ volatile("ecall");
    return n;
}

int main(void)
{
    sink = one_line(ROUNDS);
    sink = doing(ROUNDS);
    sink = inlined(ROUNDS / 3);
#if ROUNDS < 100
    __asm__ volatile("csrw mtvec, %0; csrs mie, %1; csrsi mstatus, 8" ::"r"(handler), "r"(8));
    sink = recursive(4);
    sink = calling(4);
    sink = nested(2);
    sink = interrupted(4);
#endif
    return 0;
}
