/* The inner loop of a decoder of packets that remembers steps: look up (state, payload), append the paths of the step.
 *
 * As loop.c, it knows the meaning of no packet; Python tells it each step with `packets_learn`. A step may depend on the
 * call stack (forks), on an entry of the encoder's jump target cache, and on states of its branch predictor (nodes), in
 * this order: cache, predictor, stack. It may change the stack and both tables. */
#include "packets.h"

#include "table.h"

#define NO_STEP (NODE | (NODE - 1)) /* in place of a step that is not to be taken any more */

/* What a step depends on */

static inline Key key_of_variant(uint32_t node, uint32_t variant)
{
    return (Key){variant, 0, NULL, ADDRESS_KEY, node, 0};
}

static inline int is_met(const PacketSteps *steps, const Variant *variant, const PacketRun *run)
{
    const Condition *conditions = steps->conditions + variant->first;
    for (uint32_t i = 0; i < variant->count; i++)
        if (conditions[i].entry >= run->predictor_count ||
            run->predictor[conditions[i].entry] != conditions[i].state)
            return 0;
    return 1;
}

/* The key under which a node has its step now. Returns 0 if there is none. */
static inline int key_of_node(const PacketSteps *steps, uint32_t value, const PacketRun *run, Key *key)
{
    size_t number = value & ~NODE;
    if (number >= steps->node_amount.count)
        return 0;
    const Node *node = &steps->nodes[number];
    if (!node->count) {
        int absent = node->entry >= run->cache_count || !run->known[node->entry];
        StackTop target = {absent ? 0 : load(run->cache + 8 * (size_t)node->entry), absent};
        *key = key_of_top(value, &target);
        return 1;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (is_met(steps, &node->variants[i], run)) {
            *key = key_of_variant(value, i);
            return 1;
        }
    }
    return 0;
}

/* The number of a step, plus one, or 0; *below: how much of the call stack it leaves. */
static inline uint32_t step_under(const Loop *loop, const PacketSteps *steps, const PacketRun *run, Key *key,
                                  size_t *below)
{
    uint32_t value = value_of(loop, key);
    while (value & (FORK | NODE)) {
        if (value & FORK) {
            StackTop top = {*below ? loop->stack[*below - 1] : 0, !*below};
            *key = key_of_top(value, &top);
            *below -= !top.absent;
        } else if (!key_of_node(steps, value, run, key)) {
            return 0;
        }
        value = value_of(loop, key);
    }
    return value;
}

/* The loop */

static void change_tables(const PacketSteps *steps, const Effect *effect, const PacketRun *run)
{
    if (effect->initial >= 0) {
        memset(run->predictor, effect->initial, run->predictor_count);
        memset(run->known, 0, run->cache_count);
    }
    const Training *training = steps->training + effect->training;
    for (uint32_t i = 0; i < effect->training_count; i++) {
        if (training[i].entry >= run->predictor_count)
            continue;
        uint8_t *state = &run->predictor[training[i].entry];
        *state = training[i].successors[*state & 3];
    }
    const CachedTarget *targets = steps->targets + effect->targets;
    for (uint32_t i = 0; i < effect->target_count; i++) {
        if (targets[i].entry >= run->cache_count)
            continue;
        memcpy(run->cache + 8 * (size_t)targets[i].entry, &targets[i].target, sizeof targets[i].target);
        run->known[targets[i].entry] = 1;
    }
}

static inline Key key_of_payload(uint32_t state, const uint8_t *payload, uint32_t length, size_t left)
{
    if (length > INLINE_BYTES || left < INLINE_BYTES)
        return key_of_bytes(state, payload, length, 0);
    uint64_t low = low_bytes(load(payload), length);
    uint64_t high = length > 8 ? low_bytes(load(payload + 8), length - 8) : 0;
    return (Key){low, high, payload, length, state, 0};
}

static inline int has_room(const Loop *loop)
{
    return loop->pending_amount.count + 2 <= loop->pending_amount.capacity &&
           loop->mark_amount.count < loop->mark_amount.capacity;
}

int packets_run(Loop *loop, const PacketSteps *steps, const PacketRun *run, PacketPlace *place)
{
    /* One long function: what changes with every packet stays in registers. */
    const uint8_t *data = run->data;
    size_t at = place->at, index = place->index, end = run->end;
    const uint32_t mask = (1u << run->length_bits) - 1;
    uint32_t state = loop->state;
    int stop = AT_END;
    while (at < end) {
        uint32_t length = data[at] & mask;
        if (!length && run->with_idle) {
            at++;
            continue;
        }
        if (!has_room(loop)) {
            stop = FULL;
            break;
        }
        place->length = length;
        place->step = 0;
        if (length >= end - at) {
            stop = ODD;
            break;
        }
        int timed = run->times && index < run->time_count && run->present[index];
        uint64_t now = timed ? load(run->times + 8 * index) : 0;
        size_t below = loop->depth;
        Key key = key_of_payload(state, data + at + 1, length, end - at - 1);
        uint32_t value = step_under(loop, steps, run, &key, &below);
        if (!value) {
            stop = UNKNOWN;
            break;
        }
        const Step *step = &loop->steps[value - 1];
        const PacketStep *more = &steps->steps[value - 1];
        if (more->peak && loop->depth + more->peak > run->depth) {
            stop = UNKNOWN;
            break;
        }
        if (step->path != NO_PATH)
            loop->pending[loop->pending_amount.count++] = step->path;
        if (step->flags & CALLS)
            loop->depth = push(loop, step->flags & CLEARS ? 0 : below, loop->left + step->left, step->left_count);
        if (more->effect)
            change_tables(steps, &steps->effects[more->effect - 1], run);
        state = step->state;
        if (more->landing != NO_PATH)
            loop->pending[loop->pending_amount.count++] = more->landing;
        if (step->flags & IGNORED && run->with_idle) {
            loop->unused += 1 + (size_t)length;
        } else if (step->flags & (HAS_REPORTS | IGNORED) || (step->flags & SYNCHRONIZES && run->stops_at_sync)) {
            place->step = value;
            stop = REPORTS;
            break;
        }
        if (timed)
            loop->marks[loop->mark_amount.count++] = (TimeMark){loop->pending_amount.count, now};
        at += 1 + (size_t)length;
        index++;
    }
    loop->state = state;
    place->at = at;
    place->index = index;
    return stop;
}

/* Steps */

/* The number of a new node, with NODE; 0 if there is no memory. */
static uint32_t new_node(PacketSteps *steps, Node node)
{
    if (array_reserve(&steps->nodes, &steps->node_amount, 1, sizeof node))
        return 0;
    steps->nodes[steps->node_amount.count++] = node;
    return NODE | (uint32_t)(steps->node_amount.count - 1);
}

/* The node under a key, if it has an entry of the cache, or else variants; NULL if there is none. */
static Node *node_under(const Loop *loop, PacketSteps *steps, const Key *key, int has_variants, uint32_t *value)
{
    *value = value_of(loop, key);
    size_t number = *value & ~NODE;
    if (*value & FORK || !(*value & NODE) || number >= steps->node_amount.count)
        return NULL;
    Node *node = &steps->nodes[number];
    return !node->count == !has_variants ? node : NULL;
}

static int look_up(Loop *loop, PacketSteps *steps, Key *key, uint32_t entry, const StackTop *target)
{
    uint32_t value;
    if (!node_under(loop, steps, key, 0, &value)) {
        value = new_node(steps, (Node){.entry = entry});
        if (!value || put(loop, key, value))
            return -1;
    }
    *key = key_of_top(value, target);
    return 0;
}

static int is_variant(const PacketSteps *steps, const Variant *variant, const Condition *conditions, size_t count)
{
    for (size_t i = 0; i < count && variant->count == count; i++) {
        const Condition *own = &steps->conditions[variant->first + i];
        if (own->entry != conditions[i].entry || own->state != conditions[i].state)
            return 0;
    }
    return variant->count == count;
}

static int depend(Loop *loop, PacketSteps *steps, Key *key, const Condition *conditions, size_t count)
{
    uint32_t value, variant = 0;
    if (array_reserve(&steps->conditions, &steps->condition_amount, count, sizeof *conditions))
        return -1;
    Node *node = node_under(loop, steps, key, 1, &value);
    if (!node || node->count >= VARIANTS) {
        value = new_node(steps, (Node){.count = 0});
        if (!value || put(loop, key, value))
            return -1;
        node = &steps->nodes[value & ~NODE];
    }
    while (variant < node->count && !is_variant(steps, &node->variants[variant], conditions, count))
        variant++;
    if (variant == node->count) {
        size_t first = steps->condition_amount.count;
        memcpy(steps->conditions + first, conditions, count * sizeof *conditions);
        steps->condition_amount.count += count;
        node->variants[node->count++] = (Variant){(uint32_t)first, (uint32_t)count};
    }
    *key = key_of_variant(value, variant);
    return 0;
}

static int add_effect(PacketSteps *steps, const Lesson *lesson)
{
    Effect effect = lesson->effect;
    if (array_reserve(&steps->effects, &steps->effect_amount, 1, sizeof effect) ||
        array_reserve(&steps->training, &steps->training_amount, effect.training_count, sizeof *steps->training) ||
        array_reserve(&steps->targets, &steps->target_amount, effect.target_count, sizeof *steps->targets))
        return -1;
    effect.training = (uint32_t)steps->training_amount.count;
    effect.targets = (uint32_t)steps->target_amount.count;
    if (effect.training_count)
        memcpy(steps->training + effect.training, lesson->training, effect.training_count * sizeof *steps->training);
    if (effect.target_count)
        memcpy(steps->targets + effect.targets, lesson->targets, effect.target_count * sizeof *steps->targets);
    steps->training_amount.count += effect.training_count;
    steps->target_amount.count += effect.target_count;
    steps->effects[steps->effect_amount.count++] = effect;
    return 0;
}

int packets_learn(Loop *loop, PacketSteps *steps, const Lesson *lesson)
{
    Key key = key_of_bytes(lesson->state, lesson->payload, lesson->length, 0);
    PacketStep more = {lesson->landing, lesson->peak, 0};
    if (array_reserve(&steps->steps, &steps->step_amount, 1, sizeof more))
        return -1;
    if (lesson->entry >= 0 && look_up(loop, steps, &key, (uint32_t)lesson->entry, &lesson->target))
        return -1;
    if (lesson->condition_count && depend(loop, steps, &key, lesson->conditions, lesson->condition_count))
        return -1;
    if (lesson->has_effect) {
        if (add_effect(steps, lesson))
            return -1;
        more.effect = (uint32_t)steps->effect_amount.count;
    }
    if (learn_under(loop, key, lesson->taken, lesson->taken_count, lesson->step, lesson->left))
        return -1;
    steps->step_amount.count = loop->step_amount.count;
    steps->steps[steps->step_amount.count - 1] = more;
    return 0;
}

int packets_unlearn(Loop *loop, uint32_t state, const uint8_t *payload, uint32_t length)
{
    Key key = key_of_bytes(state, payload, length, 0);
    return value_of(loop, &key) ? put(loop, &key, NO_STEP) : 0;
}

void packets_forget(PacketSteps *steps)
{
    steps->step_amount.count = steps->node_amount.count = steps->condition_amount.count = 0;
    steps->effect_amount.count = steps->training_amount.count = steps->target_amount.count = 0;
}

void packets_free(PacketSteps *steps)
{
    free(steps->steps);
    free(steps->nodes);
    free(steps->conditions);
    free(steps->effects);
    free(steps->training);
    free(steps->targets);
}

size_t packets_memory(const PacketSteps *steps)
{
    return steps->step_amount.capacity * sizeof *steps->steps + steps->node_amount.capacity * sizeof *steps->nodes +
           steps->condition_amount.capacity * sizeof *steps->conditions +
           steps->effect_amount.capacity * sizeof *steps->effects +
           steps->training_amount.capacity * sizeof *steps->training +
           steps->target_amount.capacity * sizeof *steps->targets;
}
