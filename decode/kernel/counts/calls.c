/* The steps of the automaton over the entries of a history (decode/calls/states.py), looked up by state and key. */
#include "calls.h"

#include <stdlib.h>

#define FIRST_SLOTS 1024

static KeySlot *empty_slots(size_t count)
{
    KeySlot *slots = malloc(count * sizeof *slots);
    if (slots)
        memset(slots, 0xff, count * sizeof *slots);
    return slots;
}

int call_walk_init(CallWalk *walk)
{
    walk->mask = FIRST_SLOTS - 1;
    walk->slots = empty_slots(FIRST_SLOTS);
    walk->low = INT64_MAX;
    return walk->slots ? 0 : -1;
}

void call_walk_free(CallWalk *walk)
{
    free(walk->slots);
    free(walk->steps);
    free(walk->taken);
}

/* The slot of a state and a key, or the one where it belongs. There is always an empty slot. */
static KeySlot *slot_of(const CallWalk *walk, uint32_t state, const void *key)
{
    uint64_t hash = ((uint64_t)(uintptr_t)key ^ (uint64_t)state << 40 ^ state) * 0x9E3779B97F4A7C15ull;
    for (size_t i = (size_t)(hash ^ hash >> 32);; i++) {
        KeySlot *slot = &walk->slots[i & walk->mask];
        if (slot->step == NO_STEP || (slot->key == key && slot->state == state))
            return slot;
    }
}

uint32_t call_walk_step(const CallWalk *walk, uint32_t state, const void *key) { return slot_of(walk, state, key)->step; }

static int double_slots(CallWalk *walk)
{
    KeySlot *old = walk->slots;
    size_t count = walk->mask + 1;
    KeySlot *more = empty_slots(2 * count);
    if (!more)
        return -1;
    walk->slots = more;
    walk->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++)
        if (old[i].step != NO_STEP)
            *slot_of(walk, old[i].state, old[i].key) = old[i];
    free(old);
    return 0;
}

/* Numbers may be left out. -1: there is no memory, or it is an older number. */
int call_walk_learn(CallWalk *walk, uint32_t state, const void *key, uint32_t step, CallStepInfo info)
{
    size_t count = walk->step_amount.count;
    if (step < count || step == NO_STEP ||
        array_reserve(&walk->steps, &walk->step_amount, step + 1 - count, sizeof *walk->steps) ||
        (2 * (walk->used + 1) > walk->mask && double_slots(walk)))
        return -1;
    KeySlot *slot = slot_of(walk, state, key);
    walk->used += slot->step == NO_STEP;
    *slot = (KeySlot){key, state, step};
    memset(walk->steps + count, 0, (step - count) * sizeof *walk->steps);
    walk->steps[step] = info;
    walk->step_amount.count = (size_t)step + 1;
    return 0;
}

int call_walk_take(CallWalk *walk, uint32_t step)
{
    CallStepInfo *info = &walk->steps[step];
    if (!info->times) {
        if (array_reserve(&walk->taken, &walk->taken_amount, 1, sizeof *walk->taken))
            return -1;
        walk->taken[walk->taken_amount.count++] = step;
    }
    info->times++;
    walk->begins += info->begins;
    if (info->low < walk->low)
        walk->low = info->low;
    return 0;
}
