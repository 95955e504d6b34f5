/* Harts that take turns between two processes each. scontext is 100 for each hart, and the number of the process. */
typedef unsigned long word;
#ifndef HARTS
#define HARTS 1
#endif
#define ROUNDS 6
void enter(void (*what)(void), word context);
void on_trap(void);
volatile word counts[2 * HARTS];
static volatile word rounds[HARTS];

static word hart(void)
{
    word number;
    __asm__ volatile("csrr %0, mhartid" : "=r"(number));
    return number;
}

__attribute__((noinline)) void first(void) { counts[2 * hart()] += 1; }

__attribute__((noinline)) void second(void)
{
    for (int i = 0; i < 3; i++)
        counts[2 * hart() + 1] += i;
}

__attribute__((noinline)) void met(void) { __asm__ volatile("" ::: "memory"); }

int main(word number)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    for (word round = 1;; round++) {
        enter(first, 100 * number + 101);
        enter(second, 100 * number + 102);
        rounds[number] = round;
        if (number == 0 && round >= ROUNDS) {
            word last = 0;
            while (last < HARTS && rounds[last] >= ROUNDS)
                last++;
            if (last == HARTS)
                met();
        }
    }
}
