/* Known pairs of numbers, see chain.h. */
#include "chain.h"

#include <stdlib.h>

#define FIRST_SLOTS 256 /* a power of two */

void chain_free(LinkChain *chain)
{
    free(chain->links);
    free(chain->pairs);
}

int chain_add(LinkChain *chain, uint32_t weight)
{
    if (chain->count == chain->capacity) {
        size_t capacity = chain->capacity ? 2 * chain->capacity : 256;
        Link *links = realloc(chain->links, capacity * sizeof *links);
        if (!links)
            return -1;
        chain->links = links;
        chain->capacity = capacity;
    }
    chain->links[chain->count++] = (Link){{0}, weight};
    return 0;
}

/* Where the pair is, or would be. */
static size_t pair_slot(const uint64_t *pairs, size_t slots, uint64_t pair)
{
    size_t at = (size_t)(pair * 0x9e3779b97f4a7c15u >> 20) & (slots - 1);
    while (pairs[at] && pairs[at] != pair)
        at = (at + 1) & (slots - 1);
    return at;
}

static int more_pair_slots(LinkChain *chain)
{
    size_t slots = chain->pair_slots ? 2 * chain->pair_slots : FIRST_SLOTS;
    uint64_t *pairs = calloc(slots, sizeof *pairs);
    if (!pairs)
        return -1;
    for (size_t at = 0; at < chain->pair_slots; at++)
        if (chain->pairs[at])
            pairs[pair_slot(pairs, slots, chain->pairs[at])] = chain->pairs[at];
    free(chain->pairs);
    chain->pairs = pairs;
    chain->pair_slots = slots;
    return 0;
}

static uint64_t pair_of(uint32_t before, uint32_t after) { return ((uint64_t)before << 32 | after) + 1; }

int chain_has(const LinkChain *chain, uint32_t before, uint32_t after)
{
    const Link *link = &chain->links[before];
    if (link->followers[0] == after + 1 || link->followers[1] == after + 1)
        return 1;
    if (!link->followers[1] || !chain->pair_slots)
        return 0;
    return chain->pairs[pair_slot(chain->pairs, chain->pair_slots, pair_of(before, after))] != 0;
}

int chain_pair(LinkChain *chain, uint32_t before, uint32_t after)
{
    if (chain_has(chain, before, after))
        return 0;
    Link *link = &chain->links[before];
    for (int i = 0; i < USUAL; i++)
        if (!link->followers[i]) {
            link->followers[i] = after + 1;
            return 0;
        }
    if (2 * (chain->pair_count + 1) > chain->pair_slots && more_pair_slots(chain))
        return -1;
    chain->pairs[pair_slot(chain->pairs, chain->pair_slots, pair_of(before, after))] = pair_of(before, after);
    chain->pair_count++;
    return 0;
}
