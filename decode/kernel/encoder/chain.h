/* Numbers that follow each other as they did before: a chain is followed as long as each pair of them is known. */
#ifndef CHAIN_H
#define CHAIN_H

#include <stddef.h>
#include <stdint.h>

#define USUAL 2 /* followers that are looked at first */

typedef struct {
    uint32_t followers[USUAL]; /* the number and 1; 0: there are no more */
    uint32_t weight;
} Link;

typedef struct {
    Link *links;
    size_t count, capacity;
    uint64_t *pairs; /* those that have no room in their links: both numbers, and 1; 0: free */
    size_t pair_count, pair_slots;
} LinkChain;

void chain_free(LinkChain *chain);
/* 0, or -1 without memory */
int chain_add(LinkChain *chain, uint32_t weight);
int chain_pair(LinkChain *chain, uint32_t before, uint32_t after);
int chain_has(const LinkChain *chain, uint32_t before, uint32_t after);

#endif
