/* How often what ran: the parts of a history are numbered, each after everything it contains, so that one pass upwards
 * finds how many of some addresses each has, and one downwards how often each ran. */
#include "counts.h"

#include <stdlib.h>

#define FIRST_SLOTS 1024

static inline size_t hash_of(uint64_t value)
{
    value *= 0x9E3779B97F4A7C15ull;
    return (size_t)(value ^ value >> 32);
}

/* Parts */

int parts_init(Parts *parts)
{
    parts->address_mask = parts->part_mask = FIRST_SLOTS - 1;
    parts->address_slots = calloc(FIRST_SLOTS, sizeof *parts->address_slots);
    parts->part_slots = calloc(FIRST_SLOTS, sizeof *parts->part_slots);
    if (!parts->address_slots || !parts->part_slots ||
        array_reserve(&parts->addresses, &parts->address_amount, 1, sizeof *parts->addresses))
        return -1;
    parts->addresses[parts->address_amount.count++] = UINT64_MAX; /* GAP_NUMBER, which is in no slot */
    return 0;
}

void parts_free(Parts *parts)
{
    free(parts->addresses);
    free(parts->address_slots);
    free(parts->parts);
    free(parts->part_slots);
    free(parts->items);
    free(parts->steps);
}

/* The slot with the number of a value, or the one where it belongs. There is always an empty slot. */
static uint32_t *address_slot(const Parts *parts, uint64_t address)
{
    for (size_t i = hash_of(address);; i++) {
        uint32_t *slot = &parts->address_slots[i & parts->address_mask];
        if (!*slot || parts->addresses[*slot - 1] == address)
            return slot;
    }
}

static uint32_t *part_slot(const Parts *parts, const void *object)
{
    for (size_t i = hash_of((uint64_t)(uintptr_t)object);; i++) {
        uint32_t *slot = &parts->part_slots[i & parts->part_mask];
        if (!*slot || parts->parts[*slot - 1].object == object)
            return slot;
    }
}

/* Twice as many empty slots in place of those; 0 if there is no memory. */
static int double_slots(uint32_t **slots, size_t *mask)
{
    uint32_t *more = calloc(2 * (*mask + 1), sizeof *more);
    if (!more)
        return -1;
    free(*slots);
    *slots = more;
    *mask = 2 * *mask + 1;
    return 0;
}

uint32_t parts_number(const Parts *parts, const void *object)
{
    uint32_t number = *part_slot(parts, object);
    return number ? number - 1 : NO_NUMBER;
}

uint32_t parts_address(Parts *parts, uint64_t address)
{
    uint32_t *slot = address_slot(parts, address);
    if (*slot)
        return *slot - 1;
    size_t count = parts->address_amount.count;
    if (count >= NO_NUMBER - 1 ||
        array_reserve(&parts->addresses, &parts->address_amount, 1, sizeof *parts->addresses))
        return NO_NUMBER;
    if (2 * (count + 1) > parts->address_mask) {
        if (double_slots(&parts->address_slots, &parts->address_mask))
            return NO_NUMBER;
        for (size_t i = GAP_NUMBER + 1; i < count; i++)
            *address_slot(parts, parts->addresses[i]) = (uint32_t)i + 1;
        slot = address_slot(parts, address);
    }
    parts->addresses[count] = address;
    *slot = (uint32_t)count + 1;
    parts->address_amount.count++;
    return (uint32_t)count;
}

int parts_add(Parts *parts, Part part, const uint32_t *items)
{
    size_t count = parts->part_amount.count;
    if (count >= NO_NUMBER - 1 || array_reserve(&parts->parts, &parts->part_amount, 1, sizeof *parts->parts) ||
        array_reserve(&parts->items, &parts->item_amount, part.count, sizeof *parts->items))
        return -1;
    if (2 * (count + 1) > parts->part_mask) {
        if (double_slots(&parts->part_slots, &parts->part_mask))
            return -1;
        for (size_t i = 0; i < count; i++)
            *part_slot(parts, parts->parts[i].object) = (uint32_t)i + 1;
    }
    part.begin = parts->item_amount.count;
    memcpy(parts->items + part.begin, items, part.count * sizeof *items);
    parts->item_amount.count += part.count;
    uint32_t head = items[0], tail = items[part.count - 1];
    part.first = part.kind == ADDRESSES ? head : parts->parts[head].first;
    part.last = part.kind == ADDRESSES ? tail : parts->parts[tail].last;
    parts->parts[count] = part;
    *part_slot(parts, part.object) = (uint32_t)count + 1;
    parts->part_amount.count++;
    return 0;
}

/* Matches */

static inline int is_excluded(uint8_t ends) { return ends & EXCLUDES_NEXT; }

/* The matches of a part after its first instruction. */
static uint64_t inner_matches(const Parts *parts, const Part *part, const uint8_t *flags, const Matches *matches)
{
    const uint32_t *items = parts->items + part->begin;
    uint64_t found = 0;
    if (part->kind == ADDRESSES) {
        for (uint32_t i = 1; i < part->count; i++)
            found += flags[items[i]] & WANTED && !is_excluded(flags[items[i - 1]]);
        return found;
    }
    found = matches->inner[items[0]];
    if (part->kind == ROUNDS) {
        uint8_t ends = matches->ends[items[0]];
        return found + (part->times - 1) * (found + (ends & WANTED && !is_excluded(ends)));
    }
    for (uint32_t i = 1; i < part->count; i++)
        found += matches->inner[items[i]] + (matches->ends[items[i]] & WANTED && !is_excluded(matches->ends[items[i - 1]]));
    return found;
}

/* Fill in the matches of the parts from one number up to another; those of the parts before are there. */
void parts_match(const Parts *parts, const uint8_t *flags, const Matches *matches, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const Part *part = &parts->parts[i];
        matches->inner[i] = inner_matches(parts, part, flags, matches);
        matches->ends[i] = (uint8_t)((flags[part->first] & WANTED) | (flags[part->last] & EXCLUDES_NEXT));
    }
}

/* Mark the addresses that may run directly before one that is wanted. */
void parts_mark_before(const Parts *parts, const uint8_t *flags, uint8_t *marks)
{
    for (size_t i = 0; i < parts->part_amount.count; i++) {
        const Part *part = &parts->parts[i];
        const uint32_t *items = parts->items + part->begin;
        if (part->kind != ADDRESSES)
            continue;
        for (uint32_t k = 1; k < part->count; k++)
            if (flags[items[k]] & WANTED)
                marks[items[k - 1]] = 1;
        marks[part->last] = 1;
    }
}

/* How many matches there are in the entry that a step leads to. `entered`: a trap in between excludes nothing. */
uint64_t step_matches(const Parts *parts, const uint8_t *flags, const Matches *matches, size_t step, int entered)
{
    const PartStep *taken = &parts->steps[step];
    int excluded = !(entered && taken->trapped) && taken->before != NO_NUMBER && is_excluded(flags[taken->before]);
    return matches->inner[taken->part] + (matches->ends[taken->part] & WANTED && !excluded);
}

/* Tallies */

int tallies_init(Tallies *tallies)
{
    tallies->transition_mask = FIRST_SLOTS - 1;
    tallies->transitions = malloc(FIRST_SLOTS * sizeof *tallies->transitions);
    if (!tallies->transitions)
        return -1;
    memset(tallies->transitions, 0xff, FIRST_SLOTS * sizeof *tallies->transitions);
    return 0;
}

void tallies_free(Tallies *tallies)
{
    free(tallies->ran);
    free(tallies->times);
    free(tallies->transitions);
}

static int extend(uint64_t **numbers, size_t *before, size_t now)
{
    if (now <= *before)
        return 0;
    uint64_t *more = realloc(*numbers, now * sizeof *more);
    if (!more)
        return -1;
    memset(more + *before, 0, (now - *before) * sizeof *more);
    *numbers = more;
    *before = now;
    return 0;
}

/* Make room for the parts and addresses that there are now. */
int tallies_grow(Tallies *tallies, const Parts *parts, size_t *parts_before, size_t *addresses_before)
{
    return extend(&tallies->times, parts_before, parts->part_amount.capacity) ||
                   extend(&tallies->ran, addresses_before, parts->address_amount.capacity)
               ? -1
               : 0;
}

static Transition *transition_slot(const Tallies *tallies, uint32_t from, uint32_t to)
{
    for (size_t i = hash_of((uint64_t)from << 32 | to);; i++) {
        Transition *slot = &tallies->transitions[i & tallies->transition_mask];
        if (slot->from == NO_NUMBER || (slot->from == from && slot->to == to))
            return slot;
    }
}

static int double_transitions(Tallies *tallies)
{
    Transition *old = tallies->transitions;
    size_t count = tallies->transition_mask + 1;
    Transition *more = malloc(2 * count * sizeof *more);
    if (!more)
        return -1;
    memset(more, 0xff, 2 * count * sizeof *more);
    tallies->transitions = more;
    tallies->transition_mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++)
        if (old[i].from != NO_NUMBER)
            *transition_slot(tallies, old[i].from, old[i].to) = old[i];
    free(old);
    return 0;
}

int tallies_transition(Tallies *tallies, uint32_t from, uint32_t to, uint64_t times)
{
    Transition *slot = transition_slot(tallies, from, to);
    if (slot->from != NO_NUMBER) {
        slot->times += times;
        return 0;
    }
    if (2 * (tallies->used + 1) > tallies->transition_mask) {
        if (double_transitions(tallies))
            return -1;
        slot = transition_slot(tallies, from, to);
    }
    tallies->used++;
    *slot = (Transition){from, to, times};
    return 0;
}

/* Count what is in a part as often as it ran. */
static int spread_part(Tallies *tallies, const Parts *parts, const Part *part, uint64_t times)
{
    const uint32_t *items = parts->items + part->begin;
    int failed = 0;
    if (part->kind == ROUNDS) {
        tallies->times[items[0]] += times * part->times;
        return tallies_transition(tallies, part->last, part->first, times * (part->times - 1));
    }
    if (part->kind == ADDRESSES) {
        tallies->ran[items[0]] += times;
        for (uint32_t i = 1; i < part->count && !failed; i++) {
            tallies->ran[items[i]] += times;
            failed = tallies_transition(tallies, items[i - 1], items[i], times);
        }
        return failed;
    }
    tallies->times[items[0]] += times;
    for (uint32_t i = 1; i < part->count && !failed; i++) {
        tallies->times[items[i]] += times;
        failed = tallies_transition(tallies, parts->parts[items[i - 1]].last, parts->parts[items[i]].first, times);
    }
    return failed;
}

/* Count what is in the parts numbered `to` - 1 down to `from`; those with higher numbers are done. */
int tallies_spread(Tallies *tallies, const Parts *parts, size_t from, size_t to)
{
    for (size_t i = to; i-- > from;)
        if (tallies->times[i] && spread_part(tallies, parts, &parts->parts[i], tallies->times[i]))
            return -1;
    return 0;
}
