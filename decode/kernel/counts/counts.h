/* The different parts of a history, numbered, and how often what is in them ran. See counts.c. */
#ifndef RVTRACE_COUNTS_H
#define RVTRACE_COUNTS_H

#include "loop.h"

#define NO_NUMBER UINT32_MAX
#define GAP_NUMBER 0u /* of the address that stands for a gap */

enum PartKind { ADDRESSES, PATH, ROUNDS };

/* A tuple of addresses, a path, whose parts have lower numbers, or `times` rounds of one part. Its items are numbers
 * of addresses, or of parts; `first` and `last` are numbers of addresses. */
typedef struct {
    const void *object; /* what Python has; it is never looked into */
    size_t begin;
    uint64_t times;
    uint32_t count, first, last;
    uint32_t kind;
} Part;

/* How an entry is come to: from the instruction `before`, NO_NUMBER at the beginning. */
typedef struct {
    uint32_t part, before;
    int trapped; /* the trace has a trap in between */
} PartStep;

typedef struct {
    uint64_t *addresses;
    Amount address_amount;
    uint32_t *address_slots; /* numbers plus 1 */
    size_t address_mask;
    Part *parts;
    Amount part_amount;
    uint32_t *part_slots;
    size_t part_mask;
    uint32_t *items;
    Amount item_amount;
    PartStep *steps;
    Amount step_amount;
} Parts;

/* What is looked for, one byte for each address. */
enum { WANTED = 1, EXCLUDES_NEXT = 2 };

/* Matches in a part: those after its first instruction, and in `ends` WANTED if that is one, too, unless what runs
 * before excludes it, and EXCLUDES_NEXT if the last one does. */
typedef struct {
    uint64_t *inner;
    uint8_t *ends;
    size_t count; /* parts */
} Matches;

/* Those that return an int return -1 if there is no memory. */
int parts_init(Parts *parts);
void parts_free(Parts *parts);
uint32_t parts_number(const Parts *parts, const void *object);
uint32_t parts_address(Parts *parts, uint64_t address);
int parts_add(Parts *parts, Part part, const uint32_t *items);
void parts_match(const Parts *parts, const uint8_t *flags, const Matches *matches, size_t from, size_t to);
void parts_mark_before(const Parts *parts, const uint8_t *flags, uint8_t *marks);
uint64_t step_matches(const Parts *parts, const uint8_t *flags, const Matches *matches, size_t step, int entered);

/* A step from one address to another, and how often it was made. */
typedef struct {
    uint32_t from, to; /* NO_NUMBER: an empty slot */
    uint64_t times;
} Transition;

typedef struct {
    uint64_t *ran;   /* by address */
    uint64_t *times; /* by part */
    Transition *transitions;
    size_t transition_mask, used;
} Tallies;

int tallies_init(Tallies *tallies);
void tallies_free(Tallies *tallies);
int tallies_grow(Tallies *tallies, const Parts *parts, size_t *parts_before, size_t *addresses_before);
int tallies_transition(Tallies *tallies, uint32_t from, uint32_t to, uint64_t times);
int tallies_spread(Tallies *tallies, const Parts *parts, size_t from, size_t to);

#endif
