/* Code copied to where the ELF has none; the second copy comes next to the first, after that may have been read. */
#include <stdint.h>
#include <string.h>

#define FIRST ((void *)0x80400000ul)
#define SECOND ((void *)0x80400102ul)
#define GONE ((void *)0x80400400ul)

typedef unsigned work_t(unsigned);
volatile unsigned sink;

__attribute__((noinline)) void finish(void) { sink++; }

__attribute__((noinline, aligned(4))) unsigned work(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (i & 5)
            sum += i;
    return sum;
}

__attribute__((noinline)) unsigned work_end(unsigned n) { return n + 1; }

static void run_at(void *place)
{
    memcpy(place, (void *)work, (uintptr_t)work_end - (uintptr_t)work);
    __asm__ volatile("fence.i" ::: "memory");
    sink += ((work_t *)place)(20);
}

int main(void)
{
    run_at(FIRST);
    finish();
    run_at(SECOND);
    finish();
    run_at(GONE);
    memset(GONE, 0, 64);
    finish();
    return 0;
}
