/* Steps that the kernel makes itself: those of frames that have outcomes of branches and nothing else.
 *
 * These are nearly all that comes for the first time in a trace, and what follows from them is a walk (walk.c). Python
 * tells where in which frames the outcomes are, and of each state where the hart is and which walker knows its code;
 * whatever is unusual it decodes itself. */
#include "outcomes.h"

#include <stdlib.h>

#define FIRST_SLOTS 256
#define POINTERS 64 /* of one step of usual size, as in decode/stepping/hart.py */

static size_t state_hash(KnownState state)
{
    uint64_t hash = state.pc ^ (uint64_t)(uint32_t)state.group << 40 ^ state.last * 0xff51afd7ed558ccdull;
    hash *= 0x9E3779B97F4A7C15ull;
    return (size_t)(hash ^ hash >> 32);
}

int outcomes_init(Outcomes *outcomes)
{
    outcomes->slots = calloc(FIRST_SLOTS, sizeof *outcomes->slots);
    outcomes->mask = FIRST_SLOTS - 1;
    return outcomes->slots ? 0 : -1;
}

void outcomes_forget(Outcomes *outcomes)
{
    size_t groups = outcomes->group_amount.count;
    memset(outcomes->slots, 0, (outcomes->mask + 1) * sizeof *outcomes->slots);
    outcomes->used = outcomes->state_amount.count = outcomes->group_amount.count = 0;
    outcomes->size = 0;
    for (size_t i = 0; i < groups; i++)
        Py_DECREF((PyObject *)outcomes->walkers[i]);
}

void outcomes_free(Outcomes *outcomes)
{
    if (outcomes->slots)
        outcomes_forget(outcomes);
    free(outcomes->walkers);
    free(outcomes->states);
    free(outcomes->slots);
}

size_t outcomes_memory(const Outcomes *outcomes)
{
    return (outcomes->mask + 1) * sizeof *outcomes->slots + outcomes->state_amount.capacity * sizeof *outcomes->states +
           outcomes->group_amount.capacity * sizeof *outcomes->walkers;
}

/* A new group, whose code this walker knows; -1: there is no memory. */
int64_t outcomes_group(Outcomes *outcomes, Walker *walker)
{
    if (array_reserve(&outcomes->walkers, &outcomes->group_amount, 1, sizeof *outcomes->walkers))
        return -1;
    outcomes->walkers[outcomes->group_amount.count] = (Walker *)Py_NewRef((PyObject *)walker);
    return (int64_t)outcomes->group_amount.count++;
}

static uint32_t *state_slot(const Outcomes *outcomes, uint32_t *slots, size_t mask, KnownState state)
{
    for (size_t i = state_hash(state);; i++) {
        uint32_t *slot = &slots[i & mask];
        const KnownState *there = *slot ? &outcomes->states[*slot - 1] : NULL;
        if (!there || (there->pc == state.pc && there->last == state.last && there->group == state.group))
            return slot;
    }
}

static int more_slots(Outcomes *outcomes)
{
    if (2 * (outcomes->used + 1) <= outcomes->mask)
        return 0;
    size_t mask = 2 * outcomes->mask + 1;
    uint32_t *grown = calloc(mask + 1, sizeof *grown);
    if (!grown)
        return -1;
    for (size_t i = 0; i <= outcomes->mask; i++) {
        if (!outcomes->slots[i])
            continue;
        *state_slot(outcomes, grown, mask, outcomes->states[outcomes->slots[i] - 1]) = outcomes->slots[i];
    }
    free(outcomes->slots);
    outcomes->slots = grown;
    outcomes->mask = mask;
    return 0;
}

/* The number of a state: if it is not shared, always a new one. -1: there is no memory. */
int64_t outcomes_state(Outcomes *outcomes, int32_t group, uint64_t pc, uint64_t last, int shared)
{
    if (more_slots(outcomes) ||
        array_reserve(&outcomes->states, &outcomes->state_amount, 1, sizeof *outcomes->states))
        return -1;
    KnownState state = {pc, last, group};
    uint32_t number = (uint32_t)outcomes->state_amount.count;
    if (shared) {
        uint32_t *slot = state_slot(outcomes, outcomes->slots, outcomes->mask, state);
        if (*slot)
            return *slot - 1;
        *slot = number + 1;
        outcomes->used++;
    }
    outcomes->states[number] = state;
    outcomes->state_amount.count++;
    return number;
}

/* Whether a step of this size may still be remembered; it is counted then. */
int outcomes_count(Outcomes *outcomes, uint64_t size)
{
    if (outcomes->size + size > outcomes->limit)
        return 0;
    outcomes->size += size;
    return 1;
}

uint64_t step_size(uint32_t length, const Walk *walk)
{
    return 1 + (length / 8 + walk->part_count + walk->taken_count + walk->left_count) / POINTERS;
}

/* The bits of a frame from `low` on, at most `count` of them, in *number. Returns whether they fit into 64. */
static int bits_of(const uint8_t *frame, uint32_t length, unsigned low, unsigned count, uint64_t *number)
{
    uint64_t value = 0;
    for (uint32_t i = low / DATA_BITS; i < length; i++) {
        int shift = (int)(DATA_BITS * i) - (int)low;
        uint64_t data = frame[i] >> 2;
        if (shift >= (int)count)
            break;
        if (shift > 64 - DATA_BITS && (shift >= 64 ? data : data >> (64 - shift)))
            return 0;
        value |= shift < 0 ? data >> -shift : shift < 64 ? data << shift : 0;
    }
    *number = count < 64 ? value & ((1ull << count) - 1) : value;
    return 1;
}

static enum WalkEnd walk_from(const Outcomes *outcomes, const Loop *loop, uint64_t bits, unsigned count, Walk *walk)
{
    const KnownState *state = loop->state < outcomes->state_amount.count ? &outcomes->states[loop->state] : NULL;
    if (!state || state->group == NO_GROUP)
        return WALK_UNUSUAL;
    walk_init(walk, state->pc, bits, count, -1);
    walk->stack = loop->stack;
    walk->depth = walk->peak = loop->depth;
    return walk_go(outcomes->walkers[state->group], walk);
}

/* Walk the outcomes of a frame from the loop's state on, if it has nothing else. */
enum WalkEnd outcomes_walk(const Outcomes *outcomes, const Loop *loop, const uint8_t *frame, uint32_t length,
                           Walk *walk)
{
    const OutcomeField *field = &outcomes->fields[frame[0]];
    uint64_t value, hist;
    if (!field->bits || loop->ahead < 0 || length > INLINE_BYTES)
        return WALK_UNUSUAL;
    for (uint32_t i = 0; i + 1 < length; i++)
        if (frame[i] & 0b11)
            return WALK_UNUSUAL; /* there is a further field */
    if (!bits_of(frame, length, field->low, field->bits, &value) || value != field->value ||
        !bits_of(frame, length, field->first, DATA_BITS * INLINE_BYTES, &hist) || hist < 2)
        return WALK_UNUSUAL;
    return walk_from(outcomes, loop, hist, 63u - (unsigned)__builtin_clzll(hist), walk);
}

/* The same for a payload: a number in two's complement. */
enum WalkEnd outcomes_walk_payload(const Outcomes *outcomes, const Loop *loop, const uint8_t *payload, uint32_t length,
                                   Walk *walk)
{
    const OutcomeField *field = length ? &outcomes->fields[payload[0]] : NULL;
    uint64_t value = 0;
    if (!field || !field->bits || 8 * (length - 1) >= field->first + field->count || length > 8)
        return WALK_UNUSUAL;
    memcpy(&value, payload, length);
    if (length < 8 && payload[length - 1] >> 7)
        value |= UINT64_MAX << 8 * length;
    if ((value >> field->low & ((1u << field->bits) - 1)) != field->value)
        return WALK_UNUSUAL;
    return walk_from(outcomes, loop, value >> field->first & ((1ull << field->count) - 1), field->count, walk);
}
