/* An automaton whose steps Python works out: which step a key leads to in a state, and how often it was taken. */
#ifndef RVTRACE_CALLS_H
#define RVTRACE_CALLS_H

#include "loop.h"

#define NO_STEP UINT32_MAX

typedef struct {
    const void *key; /* what Python has; it is never looked into */
    uint32_t state, step; /* NO_STEP: an empty slot */
} KeySlot;

/* A step: the state it leads to, how many functions begin in it, and the lowest level of the call stack. */
typedef struct {
    uint64_t begins;
    int64_t low;
    uint32_t state, times; /* since they were taken away last */
} CallStepInfo;

typedef struct {
    KeySlot *slots;
    size_t mask, used;
    CallStepInfo *steps;
    Amount step_amount;
    uint32_t *taken; /* the steps that were taken since, each once */
    Amount taken_amount;
    uint64_t begins; /* in the steps since they were asked for last */
    int64_t low;
} CallWalk;

int call_walk_init(CallWalk *walk);
void call_walk_free(CallWalk *walk);
uint32_t call_walk_step(const CallWalk *walk, uint32_t state, const void *key);
int call_walk_learn(CallWalk *walk, uint32_t state, const void *key, uint32_t step, CallStepInfo info);
int call_walk_take(CallWalk *walk, uint32_t step);

#endif
