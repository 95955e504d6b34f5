/* Steps that the kernel makes itself: see outcomes.c. */
#ifndef RVTRACE_OUTCOMES_H
#define RVTRACE_OUTCOMES_H

#include "loop.h"
#include "walk.h"

/* What Python tells of the frames, or payloads, that start with a byte: if the `bits` bits from bit `low` on have this
 * `value`, the bits from `first` on are outcomes, and nothing follows. No `bits`: there are none. Of a frame, the oldest
 * outcome is below the highest bit that is set; a payload has `count` of them, the oldest one is the lowest. */
typedef struct {
    uint8_t low, bits, value, first, count;
} OutcomeField;

/* How branches train a predictor: its entry for a branch, and what an entry becomes if it is not taken, or taken. */
typedef struct {
    uint32_t shift, mask;
    uint8_t successors[2][4];
} Trainer;

#define NO_GROUP (-1)

/* States of one group differ in these addresses alone: that of the next instruction, and of packets that of the last. */
typedef struct {
    uint64_t pc, last;
    int32_t group;
} KnownState;

typedef struct {
    OutcomeField fields[FIRST_BYTES];
    Trainer trainer;
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
int64_t outcomes_state(Outcomes *outcomes, int32_t group, uint64_t pc, uint64_t last, int shared);
enum WalkEnd outcomes_walk(const Outcomes *outcomes, const Loop *loop, const uint8_t *frame, uint32_t length,
                           Walk *walk);
enum WalkEnd outcomes_walk_payload(const Outcomes *outcomes, const Loop *loop, const uint8_t *payload, uint32_t length,
                                   Walk *walk);
int outcomes_count(Outcomes *outcomes, uint64_t size);
size_t outcomes_memory(const Outcomes *outcomes);
uint64_t step_size(uint32_t length, const Walk *walk);

#endif
