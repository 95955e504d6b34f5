/* What several harts do together: each its own work, a counter all count up under a lock, and no end. */
#define HARTS 32

volatile unsigned rounds[HARTS], mixed[HARTS];
volatile unsigned together, wrong, lock, atomic;

__attribute__((noinline)) unsigned mix(unsigned hart, unsigned round)
{
    unsigned sum = hart;
    for (unsigned i = 0; i < 3 + hart; i++)
        sum = sum * 31 + round;
    return sum;
}

static void take(volatile unsigned *lock, unsigned hart)
{
    unsigned old;
    do {
        __asm__ volatile("1: lr.w.aq %0, (%1)\n bnez %0, 2f\n sc.w.rl %0, %2, (%1)\n2:"
                         : "=&r"(old) : "r"(lock), "r"(hart + 1) : "memory");
    } while (old);
}

__attribute__((noinline)) void count(unsigned hart)
{
    take(&lock, hart);
    unsigned before = together;
    if (lock != hart + 1)
        wrong++;
    for (unsigned i = 0; i < 5; i++)
        mixed[hart] = mix(hart, i);
    together = before + 1;
    __asm__ volatile("fence rw, w" ::: "memory");
    lock = 0;
    __atomic_fetch_add(&atomic, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void first(unsigned hart, unsigned round) { mixed[hart] = mix(hart, round); }

__attribute__((noinline)) void second(unsigned hart, unsigned round) { mixed[hart] = mix(hart, round); }

int main(unsigned hart)
{
    for (unsigned round = 0;; round++) {
        if (hart == 0)
            first(hart, round);
        else
            second(hart, round);
        count(hart);
        rounds[hart]++;
    }
}
