/* The encoder's loop: retired blocks whose messages are known already.
 *
 * Between two messages an encoder counts: halfwords, outcomes of branches, time. That is done here, and so is looking up
 * the message where one is due: Python's encoder has made it once from the same counters, and said which they are then.
 * Nothing here knows what is in a message. */
#ifndef ENCODER_H
#define ENCODER_H

#include <stddef.h>
#include <stdint.h>

/* What happens at a block's end. */
enum BlockFlag {
    OUTCOME = 1,      /* its outcome becomes a bit of the history */
    REPORT = 2,       /* a message if it is not left by falling through */
    ALWAYS = 4,       /* with OUTCOME or REPORT: it cannot fall through */
    JUMP = 8,         /* a message, unless the target is expected */
    PUSH = 16,        /* a call: its return address is expected later */
    POP = 32,         /* a return */
    INFERRED = 64,    /* `inferred` is expected, too */
    ALONE = 128,      /* the block is too short for a jump to it to be done here */
    TRAP = 256,       /* no block, but a trap at `pc`, whose handler is at `inferred` */
    INTERRUPT = 512   /* with TRAP */
};

/* What a message is due for. */
enum Event { NO_EVENT, HISTORY_FULL, TAKEN, JUMPED, EXCEPTED, INTERRUPTED, EVENTS };

/* Why it stopped. */
enum EncoderStop {
    ALL_DONE,
    NEW_ITEM,    /* it is no block, or one that was not added */
    NEW_STEP,    /* the last message of the item is not known: `encoder_learn` takes it */
    OTHER_STEP,  /* the encoder has to do something else than what is done here */
    PERIOD_OVER, /* after the item */
    NEW_LAST     /* the block before the first one was not added */
};

/* The counters that a message depends on, and those that it changes. */
enum Counter { COUNTER_ICNT = 1, COUNTER_HIST = 2, COUNTER_REFERENCE = 4, COUNTER_PC = 8 };

typedef struct {
    uint64_t pc, fall, inferred;
    uint32_t halfwords, instructions, flags;
} EncoderBlock;

typedef struct {
    uint64_t icnt, hist, reference, pc, delay;
    uint32_t event;
} EncoderKey;

typedef struct {
    EncoderKey key;
    uint64_t icnt, hist; /* after the message */
    uint32_t message;    /* its number, from 0 on */
} EncoderStep;

/* The messages that go out: the numbers of those that are known, and MADE for one that was made by its form. */
#define MADE UINT32_MAX
#define LONGEST 64 /* bytes */
typedef struct {
    int count;
    uint32_t messages[2];
    uint8_t made[2][LONGEST];
    uint32_t lengths[2];
} SentMessages;

/* What a field of a message contains. */
enum FieldSource { FIELD_ICNT, FIELD_HIST, FIELD_ADDRESS, FIELD_DELAY, FIELD_SOURCES };
#define MOST_FIELDS 4

/* The form of an event's messages, if they have one: fields of variable length, the first of them after `head_bits` bits
 * that are always the same. Fields are cut into groups of six bits, in bytes whose low two bits say where a field and the
 * message end. After the message I-CNT is 0 and HIST is 1 if they change at all. */
typedef struct {
    uint64_t head;
    uint32_t head_bits, least; /* bits of the first field, at least */
    uint32_t count; /* of the fields; 0: there is no form */
    uint8_t fields[MOST_FIELDS];
} MessageForm;

/* Registers of the encoder, as Python gives and takes them. */
typedef struct {
    uint64_t icnt, hist, reference;
    uint64_t now, sent;        /* times: of what comes next, of the last message */
    uint64_t messages, since;  /* since the last synchronization */
    size_t depth;              /* of the calls, oldest first in `calls` of the loop */
    const EncoderBlock *last;
} EncoderState;

typedef struct {
    uint8_t uses[EVENTS], changes[EVENTS]; /* of enum Counter, by event */
    uint64_t icnt_full, hist_full, message_period, period;
    uint64_t call_mask;
    size_t most_calls;
    int timed;
    MessageForm forms[EVENTS];
    uint64_t address_mask, delay_mask; /* of what is sent */
    EncoderBlock *blocks;
    size_t block_count, block_capacity;
    EncoderStep *steps;
    size_t step_count, step_capacity;
    uint32_t *slots; /* of the steps: their numbers and 1, 0 if free */
    size_t slot_count;
    uint64_t *calls; /* a ring of most_calls, the newest at calls_end - 1 */
    size_t calls_end;
    EncoderState state;
    EncoderKey asked; /* for which NEW_STEP was returned */
    EncoderBlock none; /* before the first block, and after a trap */
} EncoderLoop;

/* 0, or -1 without memory */
int encoder_init(EncoderLoop *loop);
void encoder_free(EncoderLoop *loop);
void encoder_forget(EncoderLoop *loop);
int encoder_learn(EncoderLoop *loop, uint64_t icnt, uint64_t hist, uint32_t message);
void encoder_push(EncoderLoop *loop, uint64_t address);

/* One block or trap more. `count_time`: each instruction takes one unit of time; `count_period`: 0, or what counts for
 * the period, 1 halfwords, 2 instructions. */
enum EncoderStop encoder_step(EncoderLoop *loop, const EncoderBlock *block, int count_time, int count_period,
                              SentMessages *sent);

#endif
