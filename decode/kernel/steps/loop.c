/* The inner loop of a decoder that remembers steps: cut a frame, look up (state, frame), append the path of its step.
 *
 * It knows the meaning of no message. Python works that out when a frame comes for the first time in a state, and tells
 * it with `loop_learn`. A step that depends on the call stack is found through forks, one for each return address that
 * it pops; a step that depends on `ahead` is kept under that number, too (decode/ntrace/step.py says what it counts).
 * Python is not needed here, so other threads may run. */
#include "loop.h"

#include <stdlib.h>

#include "table.h"

#define FIRST_SLOTS 1024
#define ROOM 4096 /* for paths and times, made at once */
#define LONGEST_TIME 10 /* bytes of a timestamp; Python reads longer ones */
#define TIME_BITS 62
#define TIME_LIMIT (1ull << TIME_BITS)

/* Arrays that grow */

/* `array` is the address of a pointer. */
int array_reserve(void *array, Amount *amount, size_t more, size_t size)
{
    size_t needed = amount->count + more, capacity = amount->capacity ? amount->capacity : 256;
    if (needed <= amount->capacity)
        return 0;
    while (capacity < needed)
        capacity *= 2;
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, capacity * size);
    if (!grown)
        return -1;
    memcpy(array, &grown, sizeof grown);
    amount->capacity = capacity;
    return 0;
}

/* Steps */

int learn_under(Loop *loop, Key key, const StackTop *taken, size_t taken_count, Step step, const uint64_t *left)
{
    if (array_reserve(&loop->steps, &loop->step_amount, 1, sizeof *loop->steps) ||
        array_reserve(&loop->left, &loop->left_amount, step.left_count, sizeof *loop->left))
        return -1;
    for (size_t i = 0; i < taken_count; i++) {
        uint32_t fork = fork_under(loop, &key, step.flags & COUNTED);
        if (!fork)
            return -1;
        key = key_of_top(fork, &taken[i]);
    }
    step.left = (uint32_t)loop->left_amount.count;
    if (step.left_count)
        memcpy(loop->left + step.left, left, step.left_count * sizeof *left);
    loop->steps[loop->step_amount.count] = step;
    if (put(loop, &key, (uint32_t)loop->step_amount.count + 1))
        return -1;
    loop->left_amount.count += step.left_count;
    loop->step_amount.count++;
    return 0;
}

int loop_learn(Loop *loop, uint32_t state, const uint8_t *frame, uint32_t length, int32_t ahead,
               const StackTop *taken, size_t taken_count, Step step, const uint64_t *left)
{
    return learn_under(loop, key_of_bytes(state, frame, length, ahead), taken, taken_count, step, left);
}

void loop_forget(Loop *loop)
{
    memset(loop->slots, 0, (loop->mask + 1) * sizeof *loop->slots);
    loop->used = loop->step_amount.count = loop->fork_amount.count = 0;
    loop->long_amount.count = loop->left_amount.count = 0;
}

/* Timestamps */

/* The length of a frame without its timestamp; 0 if Python has to find that out. */
static uint32_t body_length(const FrameKind *kind, const Frame *frame)
{
    unsigned fields = kind->fields;
    if (kind->bits) {
        unsigned first = kind->low / DATA_BITS, shift = kind->low % DATA_BITS;
        unsigned last = (kind->low + kind->bits - 1u) / DATA_BITS;
        if (last >= frame->length)
            return 0;
        for (unsigned i = 1; i < last; i++)
            if (frame->bytes[i] & 0b11)
                return 0;
        unsigned value = frame->bytes[first] >> 2;
        if (last > first)
            value |= (unsigned)(frame->bytes[last] >> 2) << DATA_BITS;
        fields += (value >> shift & ((1u << kind->bits) - 1)) == kind->value;
    }
    if (!fields)
        return frame->length;
    for (uint32_t i = 0; i < frame->length; i++)
        if (frame->bytes[i] & 0b11 && !--fields)
            return i + 1;
    return frame->length;
}

/* Read the timestamp behind the body. Returns 0 if Python has to read it. */
static int timestamp_of(const Frame *frame, uint32_t body, uint64_t *time)
{
    uint64_t value = 0;
    if (frame->length - body > LONGEST_TIME)
        return 0;
    for (uint32_t i = body; i < frame->length; i++) {
        if ((frame->bytes[i] & 0b11) != (i == frame->length - 1 ? 0b11 : 0))
            return 0;
        value |= (uint64_t)(frame->bytes[i] >> 2) << DATA_BITS * (i - body);
    }
    *time = value;
    return 1;
}

/* The full time for the value of a counter that may have wrapped; TIME_LIMIT if it is too large for this loop. */
static uint64_t unwrapped(const Loop *loop, uint64_t value)
{
    unsigned bits = loop->time_bits;
    if (!bits || loop->clock == CLOCK_UNSET || value >= loop->now)
        return value;
    if (bits >= TIME_BITS)
        return TIME_LIMIT;
    value |= loop->now >> bits << bits;
    return value >= loop->now ? value : value + (1ull << bits);
}

/* The time after a timestamp, in *now, if the clock is set then. Returns 0 if Python has to set its clock. */
static int time_after(const Loop *loop, const FrameKind *kind, uint64_t value, uint64_t *now)
{
    *now = loop->now;
    if (loop->clock == CLOCK_BEYOND)
        return 0;
    if (kind->synchronizes) {
        *now = unwrapped(loop, value);
        if (loop->in_order && loop->clock != CLOCK_UNSET && *now < loop->now)
            return 0;
    } else if (loop->clock == CLOCK_SET) {
        *now = loop->xor_times ? unwrapped(loop, loop->now ^ value) : loop->now + value;
    }
    return *now < TIME_LIMIT;
}

/* The loop */

/* The value for a frame in the loop's state: a step, a fork, or 0. */
static inline uint32_t known_value(const Loop *loop, Key *key, int64_t ahead)
{
    uint32_t value = value_of(loop, key);
    if (!ahead)
        return value;
    int counted = value & FORK ? loop->fork_counted[value & ~FORK]
                  : value      ? (int)(loop->steps[value - 1].flags & COUNTED)
                               : 1;
    if (!counted && ahead > 0)
        return value;
    if (ahead != (int32_t)ahead)
        return 0;
    key->ahead = (int32_t)ahead;
    return value_of(loop, key);
}

/* The step to which a fork leads, or 0; *below: how much of the call stack it leaves. */
static inline uint32_t step_of_fork(const Loop *loop, uint32_t value, size_t *below)
{
    while (value & FORK) {
        StackTop top = {*below ? loop->stack[*below - 1] : 0, !*below};
        Key key = key_of_top(value, &top);
        value = value_of(loop, &key);
        *below -= !top.absent;
    }
    return value;
}

static inline Key key_of_frame(uint32_t state, const Frame *frame, uint32_t body)
{
    if (frame->length > INLINE_BYTES)
        return key_of_bytes(state, frame->bytes, body, 0);
    uint64_t low = low_bytes(frame->low, body), high = body > 8 ? low_bytes(frame->high, body - 8) : 0;
    return (Key){low, high, frame->bytes, body, state, 0};
}

/* Apply a step, for which there is room; `below` addresses of the call stack stay. */
static inline void apply(Loop *loop, const Step *step, size_t below, uint32_t *state, int64_t *ahead)
{
    if (step->path != NO_PATH)
        loop->pending[loop->pending_amount.count++] = step->path;
    *ahead += step->ahead;
    *state = step->state;
    if (step->flags & CALLS)
        loop->depth = push(loop, step->flags & CLEARS ? 0 : below, loop->left + step->left, step->left_count);
}

/* Note the time of a frame, unless some instructions before it are not decoded yet, or the report comes before it. */
static inline void note_time(Loop *loop, const Step *step, const Place *place, int64_t ahead)
{
    if (place->body < place->length && loop->clock == CLOCK_SET && ahead >= 0 && !(step->flags & HAS_REPORTS))
        loop->marks[loop->mark_amount.count++] = (TimeMark){loop->pending_amount.count, loop->now};
}

/* The number of the step for a frame in the loop's state, 0 if it has none. */
uint32_t loop_known(const Loop *loop, const uint8_t *frame, uint32_t length, size_t *below)
{
    Key key = key_of_bytes(loop->state, frame, length, 0);
    *below = loop->depth;
    return step_of_fork(loop, known_value(loop, &key, loop->ahead), below);
}

/* Take a step at the frame where the loop stopped because it did not know it. */
int loop_take(Loop *loop, uint32_t number, size_t below, Place *place)
{
    if (loop_reserve(loop))
        return -1;
    const Step *step = &loop->steps[number - 1];
    apply(loop, step, below, &loop->state, &loop->ahead);
    note_time(loop, step, place, loop->ahead);
    place->at += place->length;
    return 0;
}

enum Stop loop_run(Loop *loop, const uint8_t *data, size_t end, Place *place)
{
    /* One long function: what changes with every frame stays in registers. */
    size_t at = place->at;
    uint32_t state = loop->state;
    int64_t ahead = loop->ahead;
    enum Stop stop = AT_END;
    while (at < end) {
        if (data[at] == IDLE) {
            at++;
            loop->idle++;
            continue;
        }
        if (loop->pending_amount.count >= loop->pending_amount.capacity ||
            loop->mark_amount.count >= loop->mark_amount.capacity) {
            stop = FULL;
            break;
        }
        Frame frame;
        place->step = place->length = 0;
        if (!cut(data + at, end - at, &frame)) {
            stop = ODD;
            break;
        }
        const FrameKind *kind = &loop->kinds[data[at]];
        uint32_t body = frame.length;
        uint64_t now = loop->now;
        place->length = frame.length;
        if (loop->timed) {
            uint64_t time;
            body = body_length(kind, &frame);
            if (!body || (body < frame.length && (!timestamp_of(&frame, body, &time) ||
                                                  !time_after(loop, kind, time, &now)))) {
                stop = ODD;
                break;
            }
        }
        place->body = body;
        if (kind->flow != NO_FLOW) {
            loop->flow = kind->flow;
            loop->flow_at = at;
            loop->flow_length = frame.length;
        }
        if (body < frame.length) {
            loop->clock_before = loop->clock;
            loop->before = loop->now;
            loop->now = now;
            if (kind->synchronizes)
                loop->clock = CLOCK_SET;
        }
        size_t below = loop->depth;
        Key key = key_of_frame(state, &frame, body);
        uint32_t value = step_of_fork(loop, known_value(loop, &key, ahead), &below);
        if (!value) {
            stop = UNKNOWN;
            break;
        }
        const Step *step = &loop->steps[value - 1];
        apply(loop, step, below, &state, &ahead);
        note_time(loop, step, place, ahead);
        if (step->flags & (HAS_REPORTS | IGNORED)) {
            if (step->flags & HAS_REPORTS) {
                place->step = value;
                stop = REPORTS;
                break;
            }
            loop->unused += frame.length;
        }
        at += frame.length;
    }
    loop->state = state;
    loop->ahead = ahead;
    place->at = at;
    return stop;
}

/* What ran */

int loop_reserve(Loop *loop)
{
    return array_reserve(&loop->pending, &loop->pending_amount, ROOM, sizeof *loop->pending) ||
                   array_reserve(&loop->marks, &loop->mark_amount, ROOM, sizeof *loop->marks)
               ? -1
               : 0;
}

int loop_append(Loop *loop, int32_t path)
{
    if (array_reserve(&loop->pending, &loop->pending_amount, 1, sizeof *loop->pending))
        return -1;
    loop->pending[loop->pending_amount.count++] = path;
    return 0;
}

int loop_time(Loop *loop, uint64_t time)
{
    if (array_reserve(&loop->marks, &loop->mark_amount, 1, sizeof *loop->marks))
        return -1;
    loop->marks[loop->mark_amount.count++] = (TimeMark){loop->pending_amount.count, time};
    return 0;
}

int loop_init(Loop *loop, size_t max_depth, size_t kept_depth)
{
    loop->mask = FIRST_SLOTS - 1;
    loop->slots = calloc(FIRST_SLOTS, sizeof *loop->slots);
    loop->stack = calloc(max_depth, sizeof *loop->stack);
    loop->max_depth = max_depth;
    loop->kept_depth = kept_depth;
    loop->in_order = 1;
    return loop->slots && loop->stack ? 0 : -1;
}

void loop_free(Loop *loop)
{
    free(loop->slots);
    free(loop->steps);
    free(loop->fork_counted);
    free(loop->long_frames);
    free(loop->left);
    free(loop->stack);
    free(loop->pending);
    free(loop->marks);
}

size_t loop_memory(const Loop *loop)
{
    return (loop->mask + 1) * sizeof *loop->slots + loop->step_amount.capacity * sizeof *loop->steps +
           loop->long_amount.capacity + loop->left_amount.capacity * sizeof *loop->left +
           loop->pending_amount.capacity * sizeof *loop->pending + loop->mark_amount.capacity * sizeof *loop->marks;
}
