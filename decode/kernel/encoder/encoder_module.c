/* The Python type Encoder: the loop of encoder.c over a list of blocks, which are known by their identity.
 *
 * It keeps the interpreter's lock, calls nothing of Python, and keeps nothing from one `run` to the next but what it was
 * taught: the registers are Python's, who gives them and takes them. */
#include "encoder_module.h"

#include <stdlib.h>
#include <string.h>

#include "encoder.h"

#define FIRST_PLACES 1024 /* a power of two */

typedef struct {
    PyObject *object;
    uint32_t number; /* in the loop */
} BlockPlace;

typedef struct {
    PyObject_HEAD
    EncoderLoop loop;
    BlockPlace *places; /* by the address of the object */
    size_t place_count;
    PyObject **messages;
    size_t message_count, message_capacity;
} Encoder;

/* Blocks */

static size_t place_of(const BlockPlace *places, size_t count, const PyObject *object)
{
    size_t at = (size_t)((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 20 & (count - 1);
    while (places[at].object && places[at].object != object)
        at = (at + 1) & (count - 1);
    return at;
}

static const EncoderBlock *block_of(const Encoder *encoder, const PyObject *object)
{
    const BlockPlace *place = &encoder->places[place_of(encoder->places, encoder->place_count, object)];
    return place->object ? &encoder->loop.blocks[place->number] : NULL;
}

static int reserve_block(Encoder *encoder)
{
    EncoderLoop *loop = &encoder->loop;
    if (loop->block_count == loop->block_capacity) {
        size_t capacity = loop->block_capacity ? 2 * loop->block_capacity : 256;
        EncoderBlock *blocks = realloc(loop->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return -1;
        loop->blocks = blocks;
        loop->block_capacity = capacity;
    }
    if (2 * (loop->block_count + 1) <= encoder->place_count)
        return 0;
    BlockPlace *places = calloc(2 * encoder->place_count, sizeof *places);
    if (!places)
        return -1;
    for (size_t at = 0; at < encoder->place_count; at++)
        if (encoder->places[at].object)
            places[place_of(places, 2 * encoder->place_count, encoder->places[at].object)] = encoder->places[at];
    free(encoder->places);
    encoder->places = places;
    encoder->place_count *= 2;
    return 0;
}

/* add(block, pc, fall, inferred, halfwords, instructions, flags) -> number of blocks */
static PyObject *encoder_add(Encoder *encoder, PyObject *args)
{
    PyObject *object;
    unsigned long long pc, fall, inferred;
    unsigned halfwords, instructions, flags;
    if (!PyArg_ParseTuple(args, "OKKKIII", &object, &pc, &fall, &inferred, &halfwords, &instructions, &flags))
        return NULL;
    if (reserve_block(encoder))
        return PyErr_NoMemory();
    BlockPlace *place = &encoder->places[place_of(encoder->places, encoder->place_count, object)];
    if (!place->object) {
        *place = (BlockPlace){Py_NewRef(object), (uint32_t)encoder->loop.block_count};
        encoder->loop.blocks[encoder->loop.block_count++] =
            (EncoderBlock){pc, fall, inferred, halfwords, instructions, flags};
    }
    return PyLong_FromSize_t(encoder->loop.block_count);
}

/* Messages */

static void forget_messages(Encoder *encoder)
{
    size_t count = encoder->message_count;
    encoder->message_count = 0;
    for (size_t i = 0; i < count; i++)
        Py_DECREF(encoder->messages[i]);
}

/* learn(message, icnt, hist) -> number of steps. The message, and the counters after it, are those for which `run`
 * stopped at last. */
static PyObject *encoder_take_step(Encoder *encoder, PyObject *args)
{
    PyObject *message;
    unsigned long long icnt, hist;
    if (!PyArg_ParseTuple(args, "SKK", &message, &icnt, &hist))
        return NULL;
    if (!encoder->loop.asked.event) {
        PyErr_SetString(PyExc_ValueError, "no message was missed");
        return NULL;
    }
    if (encoder->message_count == encoder->message_capacity) {
        size_t capacity = encoder->message_capacity ? 2 * encoder->message_capacity : 256;
        PyObject **messages = realloc(encoder->messages, capacity * sizeof *messages);
        if (!messages)
            return PyErr_NoMemory();
        encoder->messages = messages;
        encoder->message_capacity = capacity;
    }
    if (encoder_learn(&encoder->loop, icnt, hist, (uint32_t)encoder->message_count))
        return PyErr_NoMemory();
    encoder->messages[encoder->message_count++] = Py_NewRef(message);
    encoder->loop.asked.event = NO_EVENT;
    return PyLong_FromSize_t(encoder->loop.step_count);
}

/* form(event, head, head_bits, least, fields, address_mask, delay_mask): how messages of this event are made */
static PyObject *encoder_form(Encoder *encoder, PyObject *args)
{
    unsigned event, head_bits, least;
    unsigned long long head, address_mask, delay_mask;
    const char *fields;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "IKIIy#KK", &event, &head, &head_bits, &least, &fields, &count, &address_mask,
                          &delay_mask))
        return NULL;
    int wrong = event >= EVENTS || !count || count > MOST_FIELDS || head_bits > 24 || least > 24;
    for (Py_ssize_t i = 0; !wrong && i < count; i++)
        wrong = fields[i] < 0 || fields[i] >= FIELD_SOURCES;
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "not a form that this kernel takes");
        return NULL;
    }
    MessageForm form = {head, head_bits, least, (uint32_t)count, {0}};
    memcpy(form.fields, fields, (size_t)count);
    encoder->loop.forms[event] = form;
    encoder->loop.address_mask = address_mask;
    encoder->loop.delay_mask = delay_mask;
    Py_RETURN_NONE;
}

/* forget(): all messages and blocks */
static PyObject *encoder_clear(Encoder *encoder, PyObject *none)
{
    (void)none;
    encoder_forget(&encoder->loop);
    encoder->loop.block_count = 0;
    forget_messages(encoder);
    for (size_t at = 0; at < encoder->place_count; at++) {
        PyObject *object = encoder->places[at].object;
        encoder->places[at].object = NULL;
        Py_XDECREF(object);
    }
    Py_RETURN_NONE;
}

/* The loop */

static int set_calls(EncoderLoop *loop, PyObject *calls)
{
    Py_ssize_t count = PyTuple_Size(calls);
    loop->state.depth = loop->calls_end = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *address = PyTuple_GetItem(calls, i);
        if (!address)
            return -1;
        encoder_push(loop, PyLong_AsUnsignedLongLongMask(address));
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *calls_of(const EncoderLoop *loop)
{
    size_t depth = loop->state.depth, at = loop->calls_end + (loop->calls_end < depth ? loop->most_calls : 0) - depth;
    PyObject *calls = PyTuple_New((Py_ssize_t)depth);
    for (size_t i = 0; calls && i < depth; i++, at++) {
        PyObject *address = PyLong_FromUnsignedLongLong(loop->calls[at >= loop->most_calls ? at - loop->most_calls : at]);
        if (!address || PyTuple_SetItem(calls, (Py_ssize_t)i, address)) {
            Py_DECREF(calls);
            return NULL;
        }
    }
    return calls;
}

static int append_message(const Encoder *encoder, const SentMessages *sent, int i, PyObject *out)
{
    if (sent->messages[i] != MADE)
        return PyList_Append(out, encoder->messages[sent->messages[i]]);
    PyObject *made = PyBytes_FromStringAndSize((const char *)sent->made[i], sent->lengths[i]);
    int failed = !made || PyList_Append(out, made);
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

static int encode(Encoder *encoder, PyObject *items, Py_ssize_t *at, PyObject *out, int count_time, int count_period)
{
    Py_ssize_t size = PyList_Size(items);
    enum EncoderStop stop = ALL_DONE;
    SentMessages sent;
    while (stop == ALL_DONE && *at < size) {
        const EncoderBlock *block = block_of(encoder, PyList_GetItem(items, *at));
        if (!block)
            return NEW_ITEM;
        stop = encoder_step(&encoder->loop, block, count_time, count_period, &sent);
        *at += stop == ALL_DONE || stop == PERIOD_OVER;
        for (int i = 0; i < sent.count; i++)
            if (append_message(encoder, &sent, i, out))
                return -1;
    }
    return stop;
}

/* run(items, at, out, last, (icnt, hist, reference, now, sent, messages, since), calls, count_time, count_period)
 *   -> (enum EncoderStop, at, icnt, hist, reference, now, sent, messages, since, calls) */
static PyObject *encoder_run(Encoder *encoder, PyObject *args)
{
    PyObject *items, *out, *last, *calls;
    Py_ssize_t at;
    int count_time, count_period;
    unsigned long long icnt, hist, reference, now, sent, messages, since;
    if (!PyArg_ParseTuple(args, "O!nO!O(KKKKKKK)O!ii", &PyList_Type, &items, &at, &PyList_Type, &out, &last, &icnt,
                          &hist, &reference, &now, &sent, &messages, &since, &PyTuple_Type, &calls, &count_time,
                          &count_period))
        return NULL;
    EncoderLoop *loop = &encoder->loop;
    EncoderState *state = &loop->state;
    const EncoderBlock *block = block_of(encoder, last);
    if (at < 0) {
        PyErr_SetString(PyExc_ValueError, "not a position");
        return NULL;
    }
    *state = (EncoderState){icnt, hist, reference, now, sent, messages, since, 0, block};
    loop->asked.event = NO_EVENT;
    if (set_calls(loop, calls))
        return NULL;
    int stop = !block ? NEW_LAST : encode(encoder, items, &at, out, count_time, count_period);
    if (stop != NEW_STEP)
        loop->asked.event = NO_EVENT;
    calls = stop < 0 ? NULL : calls_of(loop);
    if (!calls)
        return NULL;
    return Py_BuildValue("inKKKKKKKN", stop, at, (unsigned long long)state->icnt, (unsigned long long)state->hist,
                         (unsigned long long)state->reference, (unsigned long long)state->now,
                         (unsigned long long)state->sent, (unsigned long long)state->messages,
                         (unsigned long long)state->since, calls);
}

/* A copy of an encoder may share what was taught. */
static PyObject *encoder_deepcopy(PyObject *encoder, PyObject *memo)
{
    (void)memo;
    return Py_NewRef(encoder);
}

/* The type */

static PyObject *encoder_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    const char *uses, *changes;
    Py_ssize_t use_count, change_count, most_calls;
    unsigned long long icnt_full, hist_full, message_period, period, call_mask;
    int timed;
    if (!PyArg_ParseTuple(args, "y#y#KKKKKnp", &uses, &use_count, &changes, &change_count, &icnt_full, &hist_full,
                          &message_period, &period, &call_mask, &most_calls, &timed))
        return NULL;
    if (use_count != EVENTS || change_count != EVENTS || most_calls < 0 || most_calls > 1 << 20) {
        PyErr_SetString(PyExc_ValueError, "not the events, or the calls, that this kernel takes");
        return NULL;
    }
    Encoder *encoder = (Encoder *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!encoder)
        return NULL;
    EncoderLoop *loop = &encoder->loop;
    memcpy(loop->uses, uses, EVENTS);
    memcpy(loop->changes, changes, EVENTS);
    loop->icnt_full = icnt_full;
    loop->hist_full = hist_full;
    loop->message_period = message_period;
    loop->period = period;
    loop->call_mask = call_mask;
    loop->most_calls = (size_t)most_calls;
    loop->timed = timed;
    encoder->place_count = FIRST_PLACES;
    encoder->places = calloc(FIRST_PLACES, sizeof *encoder->places);
    if (encoder_init(loop) || !encoder->places) {
        Py_DECREF(encoder);
        return PyErr_NoMemory();
    }
    return (PyObject *)encoder;
}

static void encoder_dealloc(Encoder *encoder)
{
    forget_messages(encoder);
    free(encoder->messages);
    for (size_t at = 0; encoder->places && at < encoder->place_count; at++)
        Py_XDECREF(encoder->places[at].object);
    free(encoder->places);
    encoder_free(&encoder->loop);
    PyTypeObject *type = Py_TYPE((PyObject *)encoder);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(encoder);
    Py_DECREF(type);
}

#define METHOD(name, function, arguments) {name, (PyCFunction)(void (*)(void))function, arguments, NULL}

static PyMethodDef encoder_methods[] = {
    METHOD("add", encoder_add, METH_VARARGS),
    METHOD("learn", encoder_take_step, METH_VARARGS),
    METHOD("form", encoder_form, METH_VARARGS),
    METHOD("forget", encoder_clear, METH_NOARGS),
    METHOD("run", encoder_run, METH_VARARGS),
    METHOD("__deepcopy__", encoder_deepcopy, METH_O),
    {0},
};
static PyType_Slot encoder_slots[] = {
    {Py_tp_new, (void *)encoder_new},
    {Py_tp_dealloc, (void *)encoder_dealloc},
    {Py_tp_methods, encoder_methods},
    {0},
};
static PyType_Spec encoder_spec = {"_kernel.Encoder", sizeof(Encoder), 0, Py_TPFLAGS_DEFAULT, encoder_slots};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    int failed = !type || PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return failed;
}

int add_encoder_types(PyObject *module)
{
    return add_type(module, "Encoder", &encoder_spec) || add_type(module, "Chain", &chain_spec) ? -1 : 0;
}
