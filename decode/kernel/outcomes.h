/* Steps that the kernel makes itself: see outcomes.c. */
#ifndef RVTRACE_OUTCOMES_H
#define RVTRACE_OUTCOMES_H

#include "loop.h"
#include "walk.h"

/* What Python tells of the frames that start with a byte: if the `bits` bits from bit `low` on have this `value`, the
 * bits from `first` on are outcomes, the oldest one below the highest bit that is set, and nothing follows. No `bits`:
 * there are none. */
typedef struct {
    uint8_t low, bits, value, first;
} OutcomeField;

#define NO_GROUP (-1)

/* States of one group differ in their pc alone. */
typedef struct {
    uint64_t pc;
    int32_t group;
} KnownState;

typedef struct {
    OutcomeField fields[FIRST_BYTES];
    Walker **walkers; /* of each group */
    Amount group_amount;
    KnownState *states; /* by their numbers */
    Amount state_amount;
    uint32_t *slots; /* number + 1, by group and pc */
    size_t mask, used;
    uint64_t size, limit; /* of all steps that are remembered, as Python counts them */
} Outcomes;

int outcomes_init(Outcomes *outcomes);
void outcomes_forget(Outcomes *outcomes);
void outcomes_free(Outcomes *outcomes);
int64_t outcomes_group(Outcomes *outcomes, Walker *walker);
int64_t outcomes_state(Outcomes *outcomes, int32_t group, uint64_t pc, int shared);
enum WalkEnd outcomes_walk(const Outcomes *outcomes, const Loop *loop, const uint8_t *frame, uint32_t length,
                           Walk *walk);
int outcomes_count(Outcomes *outcomes, uint64_t size);
uint64_t step_size(uint32_t length, const Walk *walk);

#endif
