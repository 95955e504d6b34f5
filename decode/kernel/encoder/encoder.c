/* The encoder's loop, see encoder.h. */
#include "encoder.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024 /* a power of two */

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t key_hash(const EncoderKey *key)
{
    uint64_t hash = mixed(key->event, key->hist);
    hash = mixed(hash, key->icnt);
    hash = mixed(hash, key->reference + (key->delay << 48 | key->delay >> 16));
    return mixed(hash, key->pc);
}

static int same_key(const EncoderKey *a, const EncoderKey *b)
{
    return a->hist == b->hist && a->icnt == b->icnt && a->pc == b->pc && a->reference == b->reference &&
           a->delay == b->delay && a->event == b->event;
}

int encoder_init(EncoderLoop *loop)
{
    loop->slot_count = FIRST_SLOTS;
    loop->slots = calloc(FIRST_SLOTS, sizeof *loop->slots);
    loop->calls = malloc((loop->most_calls + 1) * sizeof *loop->calls);
    return loop->slots && loop->calls ? 0 : -1;
}

void encoder_free(EncoderLoop *loop)
{
    free(loop->blocks);
    free(loop->steps);
    free(loop->slots);
    free(loop->calls);
}

void encoder_forget(EncoderLoop *loop)
{
    memset(loop->slots, 0, loop->slot_count * sizeof *loop->slots);
    loop->step_count = 0;
}

static const EncoderStep *known_step(const EncoderLoop *loop, const EncoderKey *key)
{
    size_t mask = loop->slot_count - 1;
    for (size_t at = key_hash(key) & mask; loop->slots[at]; at = (at + 1) & mask) {
        const EncoderStep *step = &loop->steps[loop->slots[at] - 1];
        if (same_key(&step->key, key))
            return step;
    }
    return NULL;
}

static void put_step(EncoderLoop *loop, uint32_t number)
{
    size_t mask = loop->slot_count - 1, at = key_hash(&loop->steps[number].key) & mask;
    while (loop->slots[at])
        at = (at + 1) & mask;
    loop->slots[at] = number + 1;
}

static int more_slots(EncoderLoop *loop)
{
    uint32_t *slots = calloc(2 * loop->slot_count, sizeof *slots);
    if (!slots)
        return -1;
    free(loop->slots);
    loop->slots = slots;
    loop->slot_count *= 2;
    for (size_t number = 0; number < loop->step_count; number++)
        put_step(loop, (uint32_t)number);
    return 0;
}

int encoder_learn(EncoderLoop *loop, uint64_t icnt, uint64_t hist, uint32_t message)
{
    if (loop->step_count == loop->step_capacity) {
        size_t capacity = loop->step_capacity ? 2 * loop->step_capacity : 256;
        EncoderStep *steps = realloc(loop->steps, capacity * sizeof *steps);
        if (!steps)
            return -1;
        loop->steps = steps;
        loop->step_capacity = capacity;
    }
    if (2 * (loop->step_count + 1) > loop->slot_count && more_slots(loop))
        return -1;
    loop->steps[loop->step_count] = (EncoderStep){loop->asked, icnt, hist, message};
    put_step(loop, (uint32_t)loop->step_count++);
    return 0;
}

/* Calls: the oldest one goes where there is no room. */

void encoder_push(EncoderLoop *loop, uint64_t address)
{
    if (!loop->most_calls)
        return;
    loop->calls[loop->calls_end] = address;
    loop->calls_end = loop->calls_end + 1 == loop->most_calls ? 0 : loop->calls_end + 1;
    if (loop->state.depth < loop->most_calls)
        loop->state.depth++;
}

static size_t newest_call(const EncoderLoop *loop)
{
    return (loop->calls_end ? loop->calls_end : loop->most_calls) - 1;
}

static int is_expected(const EncoderLoop *loop, const EncoderBlock *last, uint64_t pc)
{
    if (last->flags & POP && loop->state.depth && loop->calls[newest_call(loop)] == (pc & loop->call_mask))
        return 1;
    return last->flags & INFERRED && last->inferred == pc;
}

static void follow_call(EncoderLoop *loop, const EncoderBlock *last)
{
    if (last->flags & POP && loop->state.depth) {
        loop->calls_end = newest_call(loop);
        loop->state.depth--;
    }
    if (last->flags & PUSH)
        encoder_push(loop, last->fall & loop->call_mask);
}

/* What is due when `last` has continued at pc. *hist: with its outcome. */
static enum Event event_after(const EncoderLoop *loop, const EncoderBlock *last, uint64_t pc, uint64_t *hist)
{
    uint32_t flags = last->flags;
    if (flags & (OUTCOME | REPORT)) {
        int left = flags & ALWAYS || pc != last->fall;
        if (flags & REPORT)
            return left ? TAKEN : NO_EVENT;
        *hist = *hist << 1 | left;
        return *hist >= loop->hist_full ? HISTORY_FULL : NO_EVENT;
    }
    return flags & JUMP && !is_expected(loop, last, pc) ? JUMPED : NO_EVENT;
}

static void ask(EncoderLoop *loop, enum Event event, uint64_t pc)
{
    const EncoderState *state = &loop->state;
    uint8_t uses = loop->uses[event];
    loop->asked = (EncoderKey){
        uses & COUNTER_ICNT ? state->icnt : 0,
        uses & COUNTER_HIST ? state->hist : 0,
        uses & COUNTER_REFERENCE ? state->reference : 0,
        uses & COUNTER_PC ? pc : 0,
        loop->timed ? state->now - state->sent : 0,
        event,
    };
}

/* Messages by their form */

#define GROUP 6 /* bits */
#define END_OF_FIELD 1
#define END_OF_MESSAGE 3

static uint8_t *put_field(uint8_t *out, uint64_t value, uint32_t least)
{
    uint32_t bits = 0;
    do {
        *out++ = (uint8_t)((value & 63) << 2);
        value >>= GROUP;
        bits += GROUP;
    } while (value || bits < least);
    out[-1] |= END_OF_FIELD;
    return out;
}

static uint64_t field_value(const EncoderLoop *loop, uint8_t field, uint64_t pc)
{
    const EncoderState *state = &loop->state;
    switch (field) {
    case FIELD_ICNT:
        return state->icnt;
    case FIELD_HIST:
        return state->hist;
    case FIELD_ADDRESS:
        return (state->reference ^ pc) >> 1 & loop->address_mask;
    default:
        return (state->now - state->sent) & loop->delay_mask;
    }
}

static void make_message(const EncoderLoop *loop, const MessageForm *form, uint64_t pc, SentMessages *sent)
{
    uint8_t *begin = sent->made[sent->count], *out = begin;
    uint64_t value = form->head | field_value(loop, form->fields[0], pc) << form->head_bits;
    out = put_field(out, value, form->head_bits + form->least);
    for (uint32_t i = 1; i < form->count; i++)
        out = put_field(out, field_value(loop, form->fields[i], pc), 1);
    out[-1] |= END_OF_MESSAGE;
    sent->lengths[sent->count] = (uint32_t)(out - begin);
    sent->messages[sent->count++] = MADE;
}

/* Send the message that is due for `event` at pc. */
static enum EncoderStop send(EncoderLoop *loop, enum Event event, uint64_t pc, SentMessages *sent)
{
    EncoderState *state = &loop->state;
    if (state->messages + 1 >= loop->message_period || (loop->timed && state->now < state->sent))
        return OTHER_STEP;
    uint64_t icnt = 0, hist = 1;
    if (loop->forms[event].count) {
        make_message(loop, &loop->forms[event], pc, sent);
    } else {
        ask(loop, event, pc);
        const EncoderStep *step = known_step(loop, &loop->asked);
        if (!step)
            return NEW_STEP;
        icnt = step->icnt;
        hist = step->hist;
        sent->messages[sent->count++] = step->message;
    }
    uint8_t changes = loop->changes[event];
    state->icnt = changes & COUNTER_ICNT ? icnt : state->icnt;
    state->hist = changes & COUNTER_HIST ? hist : state->hist;
    state->reference = changes & COUNTER_REFERENCE ? pc : state->reference;
    state->messages++;
    state->sent = state->now;
    return ALL_DONE;
}

/* Count what retired, and go on to `block`. */
static enum EncoderStop count_block(EncoderLoop *loop, const EncoderBlock *block, int count_time, int count_period)
{
    EncoderState *state = &loop->state;
    if (state->icnt + block->halfwords >= loop->icnt_full)
        return OTHER_STEP;
    state->icnt += block->halfwords;
    state->last = block;
    state->now += count_time ? block->instructions : 0;
    state->since += count_period == 1 ? block->halfwords : count_period == 2 ? block->instructions : 0;
    return count_period && state->since >= loop->period ? PERIOD_OVER : ALL_DONE;
}

static enum EncoderStop take_trap(EncoderLoop *loop, const EncoderBlock *trap, SentMessages *sent)
{
    loop->state.last = &loop->none;
    return send(loop, trap->flags & INTERRUPT ? INTERRUPTED : EXCEPTED, trap->inferred, sent);
}

enum EncoderStop encoder_step(EncoderLoop *loop, const EncoderBlock *block, int count_time, int count_period,
                              SentMessages *sent)
{
    EncoderState before = loop->state;
    const EncoderBlock *last = before.last;
    enum EncoderStop stop = ALL_DONE;
    sent->count = 0;
    if (block->flags & ALONE && last->flags & JUMP)
        return OTHER_STEP;
    enum Event event = event_after(loop, last, block->pc, &loop->state.hist);
    if (event)
        stop = send(loop, event, block->pc, sent);
    if (stop == NEW_STEP && block->flags & TRAP)
        stop = OTHER_STEP; /* the first of two messages: only the last one of an item can be asked for */
    if (stop == ALL_DONE)
        stop = block->flags & TRAP ? take_trap(loop, block, sent) : count_block(loop, block, count_time, count_period);
    if (stop != ALL_DONE && stop != PERIOD_OVER) {
        loop->state = before;
        sent->count = 0;
    } else if (last->flags & (PUSH | POP)) {
        follow_call(loop, last);
    }
    return stop;
}
