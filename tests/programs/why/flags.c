/* A flag that an interrupt handler overwrites: it stores the whole word, not its own bit. */
#include <stdint.h>

#define MTIMECMP (*(volatile uint64_t *)0x02004000UL)
#define MTIME (*(volatile uint64_t *)0x0200bff8UL)
enum { READY = 1, TICK = 2, SEND = 4 };
volatile uint32_t flags, ticks, lost;
static char queue[8];
static int filled;

void __attribute__((interrupt, aligned(4))) on_timer(void)
{
    ticks++;
    flags = READY | TICK;
    MTIMECMP = MTIME + 1000;
}

static void __attribute__((noinline)) post(char c)
{
    queue[filled++ & 7] = c;
    flags |= SEND;
}

void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" : : "r"(on_timer));
    __asm__ volatile("csrs mie, %0" : : "r"(1 << 7));
    flags = READY;
    post('a');
    MTIMECMP = 0;
    __asm__ volatile("csrsi mstatus, 8");
    while (!ticks) {
    }
    if (!(flags & SEND))
        lost++;
    finish();
    return 0;
}
