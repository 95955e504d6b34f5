/* The table of the steps of a loop, by state and bytes, and the loop's call stack; inline, for the loops of both formats.
 *
 * What is under a key is a step (its number, plus one), or FORK and the number of a fork: then the steps are under the
 * address on top of the call stack, with the fork in place of the state. NODE is for those of packets.c. */
#ifndef RVTRACE_TABLE_H
#define RVTRACE_TABLE_H

#include <stdlib.h>

#include "loop.h"

#define FORK 0x80000000u /* of a value, and of the state under which a fork keeps its steps */
#define NODE 0x40000000u
#define ADDRESS_KEY 0xfffeu /* in place of the length of a frame */
#define EMPTY_STACK_KEY 0xffffu

/* `bytes`: those of a frame that is too long for two numbers; `low` is then their hash. */
typedef struct {
    uint64_t low, high;
    const uint8_t *bytes;
    uint32_t length;
    uint32_t state;
    int32_t ahead;
} Key;

static inline int is_long(uint32_t length) { return length > INLINE_BYTES && length < ADDRESS_KEY; }

static inline size_t hash_of(uint64_t low, uint64_t high, uint32_t state, int32_t ahead)
{
    uint64_t hash = (low ^ state * 0x9E3779B97F4A7C15ull) * 0xff51afd7ed558ccdull;
    hash ^= (high + (uint32_t)ahead) * 0xc4ceb9fe1a85ec53ull;
    return (size_t)(hash ^ hash >> 29 ^ hash >> 47);
}

static inline uint64_t hash_of_bytes(const uint8_t *bytes, uint32_t length)
{
    uint64_t hash = length;
    uint32_t i = 0;
    for (; i + 8 <= length; i += 8) {
        hash = (hash ^ load(bytes + i)) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 32;
    }
    for (; i < length; i++) {
        hash = (hash ^ bytes[i]) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 31;
    }
    return hash;
}

static inline Key key_of_bytes(uint32_t state, const uint8_t *bytes, uint32_t length, int32_t ahead)
{
    Key key = {0, 0, bytes, length, state, ahead};
    if (length > INLINE_BYTES) {
        key.low = hash_of_bytes(bytes, length);
        return key;
    }
    uint8_t padded[INLINE_BYTES] = {0};
    if (length)
        memcpy(padded, bytes, length);
    key.low = load(padded);
    key.high = load(padded + 8);
    return key;
}

static inline Key key_of_top(uint32_t fork, const StackTop *top)
{
    Key key = {top->absent ? 0 : top->value, 0, NULL, top->absent ? EMPTY_STACK_KEY : ADDRESS_KEY, fork, 0};
    return key;
}

/* The slot of a key, or the one where it belongs. There is always an empty slot. */
static inline Slot *slot_of(const Loop *loop, const Key *key)
{
    size_t i = hash_of(key->low, key->high, key->state, key->ahead);
    for (;; i++) {
        Slot *slot = &loop->slots[i & loop->mask];
        if (!slot->value)
            return slot;
        if (slot->low != key->low || slot->state != key->state || slot->ahead != key->ahead ||
            slot->length != key->length)
            continue;
        if (!is_long(key->length) ? slot->high == key->high
                                  : !memcmp(loop->long_frames + slot->high, key->bytes, key->length))
            return slot;
    }
}

static inline uint32_t value_of(const Loop *loop, const Key *key) { return slot_of(loop, key)->value; }

static inline int make_more_slots(Loop *loop)
{
    Slot *old = loop->slots;
    size_t count = loop->mask + 1;
    Slot *slots = calloc(2 * count, sizeof *slots);
    if (!slots)
        return -1;
    loop->slots = slots;
    loop->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++) {
        if (!old[i].value)
            continue;
        uint64_t high = is_long(old[i].length) ? 0 : old[i].high;
        size_t to = hash_of(old[i].low, high, old[i].state, old[i].ahead);
        while (slots[to & loop->mask].value)
            to++;
        slots[to & loop->mask] = old[i];
    }
    free(old);
    return 0;
}

static inline int put(Loop *loop, const Key *key, uint32_t value)
{
    Slot *slot = slot_of(loop, key);
    if (slot->value) {
        slot->value = value;
        return 0;
    }
    if (2 * (loop->used + 1) > loop->mask) {
        if (make_more_slots(loop))
            return -1;
        slot = slot_of(loop, key);
    }
    uint64_t high = key->high;
    if (is_long(key->length)) {
        if (array_reserve(&loop->long_frames, &loop->long_amount, key->length, 1))
            return -1;
        high = loop->long_amount.count;
        memcpy(loop->long_frames + high, key->bytes, key->length);
        loop->long_amount.count += key->length;
    }
    loop->used++;
    *slot = (Slot){key->low, high, key->state, key->ahead, key->length, value};
    return 0;
}

/* The fork under a key, made if it is not there; 0 if there is no memory. */
static inline uint32_t fork_under(Loop *loop, const Key *key, int counted)
{
    uint32_t value = value_of(loop, key);
    if (value & FORK)
        return value;
    if (array_reserve(&loop->fork_counted, &loop->fork_amount, 1, sizeof *loop->fork_counted))
        return 0;
    uint32_t fork = FORK | (uint32_t)loop->fork_amount.count;
    loop->fork_counted[loop->fork_amount.count++] = (uint8_t)counted;
    return put(loop, key, fork) ? 0 : fork;
}

/* The depth of the call stack after `count` addresses were put on the lowest `below` of it; as `pushed` in Python. */
static inline size_t push(Loop *loop, size_t below, const uint64_t *left, size_t count)
{
    loop->stack_changed = 1;
    if (below + count > loop->max_depth) {
        size_t kept = count < loop->kept_depth ? loop->kept_depth - count : 0;
        memmove(loop->stack, loop->stack + below - kept, kept * sizeof *left);
        if (count > loop->kept_depth) {
            left += count - loop->kept_depth;
            count = loop->kept_depth;
        }
        below = kept;
    }
    if (count)
        memcpy(loop->stack + below, left, count * sizeof *left);
    return below + count;
}

/* Remember a step under a key, through a fork for each of the addresses that it takes from the call stack; `left`: those
 * that it puts there. Returns -1 if there is no memory. */
int learn_under(Loop *loop, Key key, const StackTop *taken, size_t taken_count, Step step, const uint64_t *left);

#endif
