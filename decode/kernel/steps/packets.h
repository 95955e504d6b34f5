/* The loop of a decoder of packets, whose steps may depend on two tables of the encoder. See packets.c.
 *
 * The packets are frames of a byte with the length, and a payload of so many bytes. */
#ifndef RVTRACE_PACKETS_H
#define RVTRACE_PACKETS_H

#include "loop.h"

enum { SYNCHRONIZES = 16 }; /* one more flag of a step */

enum PacketStop { EARLIER = FULL + 1 }; /* one more reason to stop: this packet is earlier than the one before */

#define VARIANTS 8 /* of a step that depends on the predictor, as many as Python has */

/* A step depends on this state of an entry of the predictor. */
typedef struct {
    uint32_t entry;
    uint8_t state;
} Condition;

/* An entry of the predictor goes on to successors[its state]. */
typedef struct {
    uint32_t entry;
    uint8_t successors[4];
} Training;

typedef struct {
    uint32_t entry;
    uint64_t target;
} CachedTarget;

/* What a step does to the tables: `initial` is the state of the predictor that it resets first, -1 if it resets neither. */
typedef struct {
    int initial;
    uint32_t training, training_count;
    uint32_t targets, target_count;
} Effect;

/* What the step of a packet has besides that of `Step`: one more path, how much deeper the stack is meanwhile, the number
 * of its effect, plus one. */
typedef struct {
    int32_t landing;
    uint32_t peak;
    uint32_t effect;
} PacketStep;

typedef struct {
    uint32_t first, count; /* of the conditions */
} Variant;

/* What a step depends on: an entry of the cache, or, if there are variants, entries of the predictor. */
typedef struct {
    uint32_t entry;
    uint32_t count;
    Variant variants[VARIANTS];
} Node;

typedef struct {
    PacketStep *steps;
    Amount step_amount;
    Node *nodes;
    Amount node_amount;
    Condition *conditions;
    Amount condition_amount;
    Effect *effects;
    Amount effect_amount;
    Training *training;
    Amount training_amount;
    CachedTarget *targets;
    Amount target_amount;
} PacketSteps;

/* A step to remember. `entry`: that of the cache on which it depends, which has this target; -1: it does not. */
typedef struct {
    uint32_t state;
    const uint8_t *payload;
    uint32_t length;
    int64_t entry;
    StackTop target;
    const Condition *conditions;
    size_t condition_count;
    const StackTop *taken;
    size_t taken_count;
    const uint64_t *left;
    Step step;
    int32_t landing;
    uint32_t peak;
    int has_effect;
    Effect effect; /* its numbers say how many there are below */
    const Training *training;
    const CachedTarget *targets;
} Lesson;

/* The packets, and what is the caller's. `known`: which entries of the cache have a target. */
typedef struct {
    const uint8_t *data;
    size_t end;
    uint8_t length_bits; /* of the first byte of a packet */
    int with_idle;       /* a length of 0 is an idle byte, not an empty packet */
    size_t depth;        /* that of the encoder's stack */
    int stops_at_sync;
    const uint8_t *times, *present; /* NULL: there are none; 64 bits and a byte for each packet */
    size_t time_count;
    uint8_t *predictor;
    size_t predictor_count;
    uint8_t *cache, *known;
    size_t cache_count;
} PacketRun;

typedef struct {
    size_t at, index;
    uint32_t length, step;
} PacketPlace;

int packets_run(Loop *loop, const PacketSteps *steps, const PacketRun *run, PacketPlace *place);
int packets_learn(Loop *loop, PacketSteps *steps, const Lesson *lesson); /* -1: there is no memory */
int packets_unlearn(Loop *loop, uint32_t state, const uint8_t *payload, uint32_t length);
void packets_forget(PacketSteps *steps);
void packets_free(PacketSteps *steps);
size_t packets_memory(const PacketSteps *steps);

#endif
