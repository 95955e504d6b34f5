/* The loop of a decoder that remembers steps: what it keeps, and what it can be told. See loop.c. */
#ifndef RVTRACE_LOOP_H
#define RVTRACE_LOOP_H

#include "frames.h"

enum Flow { NO_FLOW, BRANCH, OTHER_FLOW };

/* What Python tells of the frames that start with a byte; it packs one byte for each of these.
 * The timestamp follows after `fields` fields, and one more if the `bits` bits from bit `low` on have this `value`. */
typedef struct {
    uint8_t flow;         /* enum Flow: a later message may repeat a branch */
    uint8_t synchronizes; /* its timestamp is absolute */
    uint8_t fields;
    uint8_t low, bits, value;
} FrameKind;

#define FIRST_BYTES 256

enum Stop {
    AT_END,
    UNKNOWN,  /* no step is known for this frame; its time was read */
    REPORTS,  /* this frame's step was taken, and Python has something to report */
    ODD,      /* a frame, or a timestamp, that only Python can judge */
    FULL,     /* there is no room for more paths: to be made, and to go on */
};

enum Clock {
    CLOCK_UNSET,
    CLOCK_SET,
    CLOCK_BEYOND, /* more than the loop can count */
    CLOCK_UNSURE, /* messages were lost: the next absolute timestamp sets it */
};

/* IGNORED: the frame means nothing in this state; its bytes are counted as unused. */
enum { COUNTED = 1, HAS_REPORTS = 2, CALLS = 4, CLEARS = 8, IGNORED = 32 };

#define NO_PATH (-1)

/* The effect of a frame in a state. `left`: where the addresses begin that it leaves on the call stack. */
typedef struct {
    uint32_t state;
    int32_t ahead;
    int32_t path;
    uint32_t left, left_count;
    uint32_t flags;
} Step;

/* An address on top of the call stack, or that there is none. */
typedef struct {
    uint64_t value;
    int absent;
} StackTop;

typedef struct {
    uint64_t low, high;
    uint32_t state;
    int32_t ahead;
    uint32_t length, value;
} Slot;

typedef struct {
    size_t path; /* how many paths were pending */
    uint64_t time;
} TimeMark;

typedef struct {
    size_t count, capacity;
} Amount;

typedef struct {
    FrameKind kinds[FIRST_BYTES];
    int timed, xor_times, in_order;
    unsigned time_bits; /* of the counter, which wraps; 0: it does not */
    /* What is known. */
    Slot *slots;
    size_t mask, used; /* slots less 1; slots in use */
    Step *steps;
    Amount step_amount;
    uint8_t *fork_counted;
    Amount fork_amount;
    uint8_t *long_frames;
    Amount long_amount;
    uint64_t *left;
    Amount left_amount;
    /* Where the decoder is. */
    uint32_t state;
    int64_t ahead;
    uint64_t *stack;
    size_t depth, max_depth, kept_depth;
    int stack_changed;
    enum Clock clock;
    uint64_t now;
    enum Clock clock_before; /* the clock before the last timestamp, and its time: that one may turn out to be noise */
    uint64_t before;
    size_t flow_at; /* where in the data the last frame about the flow is */
    uint32_t flow_length;
    enum Flow flow;
    uint64_t idle, unused; /* bytes */
    /* What ran, since it was taken away last. */
    int32_t *pending;
    Amount pending_amount;
    TimeMark *marks;
    Amount mark_amount;
} Loop;

/* Where the loop stopped: a frame of `length` bytes, of which `body` come before the timestamp, and its step. */
typedef struct {
    size_t at;
    uint32_t length, body, step;
} Place;

/* Those that return an int return -1 if there is no memory. */
int loop_init(Loop *loop, size_t max_depth, size_t kept_depth);
void loop_free(Loop *loop);
enum Stop loop_run(Loop *loop, const uint8_t *data, size_t end, Place *place);
int loop_learn(Loop *loop, uint32_t state, const uint8_t *frame, uint32_t length, int32_t ahead,
               const StackTop *taken, size_t taken_count, Step step, const uint64_t *left);
uint32_t loop_known(const Loop *loop, const uint8_t *frame, uint32_t length, size_t *below);
int loop_take(Loop *loop, uint32_t step, size_t below, Place *place);
void loop_forget(Loop *loop);
int loop_reserve(Loop *loop);
int loop_append(Loop *loop, int32_t path);
int loop_time(Loop *loop, uint64_t time);
int array_reserve(void *array, Amount *amount, size_t more, size_t size);
size_t loop_memory(const Loop *loop);

#endif
