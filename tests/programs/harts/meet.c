/* Several harts, each with work of its own kind; when all have done some, hart 0 comes to `met`: in each EVERYth round. */
#ifndef HARTS
#define HARTS 8
#endif
#define ROUNDS 6
#ifndef EVERY
#define EVERY 1
#endif

static volatile unsigned rounds[HARTS];
volatile unsigned sums[HARTS];

__attribute__((noinline)) unsigned climb(unsigned height) { return height ? height + climb(height - 1) : 1; }

__attribute__((noinline)) unsigned loop(unsigned number)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < number % 9; i++)
        sum = sum * 31 + (i & 1 ? number : i);
    return sum;
}

__attribute__((noinline)) unsigned choose(unsigned number)
{
    switch (number % 5) {
    case 0: return 7;
    case 1: return climb(2);
    case 2: return number * 3;
    case 3: return loop(number);
    default: return number - 1;
    }
}

static unsigned (*const works[])(unsigned) = {climb, loop, choose};

__attribute__((noinline)) void met(void) { __asm__ volatile("" ::: "memory"); }

int main(unsigned hart)
{
    for (unsigned round = 1;; round++) {
        sums[hart] += works[(hart + round) % 3](hart + round);
        rounds[hart] = round;
        if (hart == 0 && round >= ROUNDS && round % EVERY == 0) {
            unsigned last = 0;
            while (last < HARTS && rounds[last] >= ROUNDS)
                last++;
            if (last == HARTS)
                met();
        }
    }
}
