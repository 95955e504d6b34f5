/* Priorities, turns among equal ones, sleep: for all of the small kernels, whose own structures keep what a debugger
 * looks at.
 */
#include "tasks.h"
#include <stdint.h>

enum { FREE, READY, RUNS, SLEEPS };
static struct slot {
    void *task;
    int state, priority, bound, hart;
    word wakes;
} slots[16];
#define SLOTS ((int)(sizeof slots / sizeof slots[0]))

static word now;
static int last[HARTS];
static volatile int locked;

void lock(void)
{
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        ;
}

void unlock(void)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static struct slot *slot_of(void *task)
{
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].state != FREE && slots[i].task == task)
            return &slots[i];
    return 0;
}

void *slot_take(void *task, int priority, int hart)
{
    int i = 0;
    while (slots[i].state != FREE)
        i++;
    slots[i] = (struct slot){task, READY, priority, hart, 0, 0};
    return task;
}

void slot_sleep(void *task, word ticks)
{
    struct slot *slot = slot_of(task);
    slot->state = SLEEPS;
    slot->wakes = now + ticks;
}

void slot_free(void *task)
{
    slot_of(task)->state = FREE;
}

int slot_runs_elsewhere(void *task, int hart)
{
    struct slot *slot = slot_of(task);
    return slot && slot->state == RUNS && slot->hart != hart;
}

void slots_tick(void)
{
    now++;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].state == SLEEPS && slots[i].wakes <= now)
            slots[i].state = READY;
}

void *slot_next(int hart)
{
    struct slot *best = 0;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].state == RUNS && slots[i].hart == hart)
            slots[i].state = READY;
    for (int i = 1; i <= SLOTS; i++) {
        struct slot *slot = &slots[(last[hart] + i) % SLOTS];
        if (slot->state == READY && (slot->bound < 0 || slot->bound == hart))
            if (!best || slot->priority > best->priority)
                best = slot;
    }
    best->state = RUNS;
    best->hart = hart;
    last[hart] = best - slots;
    return best->task;
}

void timer_next(void)
{
    volatile uint32_t *at = (volatile uint32_t *)(0x2004000UL + 8 * (word)hart_number());
    at[0] = *(volatile uint32_t *)0x200bff8UL + TICK; /* no run is longer than its lower half */
    at[1] = 0;
}
