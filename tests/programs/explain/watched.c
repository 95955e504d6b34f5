/* Work that a watchdog looks after: a timer that begins again from the start if it was not fed. */
#include "base.h"

#define PATIENCE 8

extern void _start(void);
static volatile unsigned unfed;
static volatile unsigned queue[8];
static volatile unsigned head, tail;
unsigned handled;

static void HANDLER on_trap(void)
{
    if (!is_interrupt(trap_cause())) {
        for (;;) {
        }
    }
    MTIMECMP = MTIME + 600;
    queue[head % 8] = head;
    head++;
    unfed++;
    if (unfed > PATIENCE) {
        MTIMECMP = ~0ull;
        __asm__ volatile("csrci mstatus, 8");
        __asm__ volatile("la t0, _start\n jr t0");
    }
}

static APART void feed(void)
{
    unfed = 0;
}

static APART unsigned work(unsigned item)
{
    unsigned sum = item;
    for (unsigned i = 0; i < 20; i++)
        sum = sum * 3 + i;
    return sum;
}

static APART unsigned next_item(void)
{
    while (head == tail) {
    }
    return queue[tail++ % 8];
}

int main(void)
{
    unsigned sum = 0;
    handle_traps(on_trap);
    MTIMECMP = MTIME + 600;
    enable(TIMER);
    while (handled < 40) {
        sum += work(next_item());
        handled++;
        feed();
    }
    return sum & 1;
}
