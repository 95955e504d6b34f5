/* A state machine that sleeps between ticks of a timer, for ever. */
#include "base.h"

enum { IDLE, HEAT, HOLD, COOL };

static volatile unsigned ticks;
static int state;
static int level;
int history[16];
unsigned changes;

static void HANDLER on_trap(void)
{
    if (!is_interrupt(trap_cause())) {
        for (;;) {
        }
    }
    ticks++;
    MTIMECMP = MTIME + 700;
}

static APART void enter(int next)
{
    state = next;
    history[changes % 16] = next;
    changes++;
}

static APART void advance(void)
{
    switch (state) {
    case IDLE:
        enter(HEAT);
        break;
    case HEAT:
        level += 3;
        if (level > 10)
            enter(HOLD);
        break;
    case HOLD:
        level -= 1;
        if (level < 9)
            enter(COOL);
        break;
    default:
        level -= 2;
        if (level <= 0)
            enter(IDLE);
    }
}

static APART void sleep_until(unsigned tick)
{
    while (ticks < tick)
        __asm__ volatile("wfi");
}

int main(void)
{
    unsigned next = 1;
    handle_traps(on_trap);
    MTIMECMP = MTIME + 700;
    enable(TIMER);
    for (;;) {
        sleep_until(next);
        next = ticks + 1;
        advance();
    }
}
