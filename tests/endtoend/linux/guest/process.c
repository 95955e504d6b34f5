/* A process of which two are linked for the same addresses, with other code there: ROUNDS and STEP. */
#include "system.h"

static unsigned long sum;

__attribute__((noinline)) static unsigned long work(unsigned long value) {
#if STEP == 1
    for (int i = 0; i < 100; i++) value = value * 3 + (value & 1 ? 7 : 1);
#else
    for (int i = 0; i < 70; i++) value ^= value >> 3 | (value & 4 ? value << 5 : 1);
#endif
    return value;
}

void begin_here(void) {
    char *top = (char *)call(BRK, 0, 0, 0, 0, 0);
    call(BRK, (long)top + (64 << 10), 0, 0, 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        sum += work(sum + STEP);
        if (round < 16) top[round * 4096] = (char)sum; /* a page fault */
        call(round & 1 ? YIELD : GETPID, 0, 0, 0, 0, 0);
    }
    call(EXIT, 0, 0, 0, 0, 0);
}

#if STEP == 2
__asm__("nop\n"); /* so that the entry is another */
#endif
__asm__(".globl _start\n_start: call begin_here\n");
