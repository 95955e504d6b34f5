/* The methods of the type Kernel for packets; see packets.h. _kernel.pyi has the types. */
#include "kernel.h"

#include <stdlib.h>

/* Reading tuples of tuples. Memory of the lists that they become is the caller's. */

static int conditions_of(PyObject *tuple, Condition *conditions)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned state;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "II", &conditions[i].entry, &state))
            return -1;
        conditions[i].state = (uint8_t)state;
    }
    return 0;
}

static int training_of(PyObject *tuple, Training *training)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *successors;
        Py_ssize_t length;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "Iy#", &training[i].entry, &successors, &length))
            return -1;
        if (length != sizeof training[i].successors) {
            PyErr_SetString(PyExc_ValueError, "not a successor for each state of the predictor");
            return -1;
        }
        memcpy(training[i].successors, successors, sizeof training[i].successors);
    }
    return 0;
}

static int targets_of(PyObject *tuple, CachedTarget *targets)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long target;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "IK", &targets[i].entry, &target))
            return -1;
        targets[i].target = target;
    }
    return 0;
}

/* Room for what the tuples of a lesson become. */
typedef struct {
    StackTop *taken;
    uint64_t *left;
    Condition *conditions;
    Training *training;
    CachedTarget *targets;
} Room;

static void release_room(Room *room)
{
    free(room->taken);
    free(room->left);
    free(room->conditions);
    free(room->training);
    free(room->targets);
}

static size_t items(PyObject *tuple) { return (size_t)PyTuple_Size(tuple); }

static int make_room(Room *room, PyObject *taken, PyObject *left, PyObject *conditions, PyObject *training,
                     PyObject *targets)
{
    room->taken = malloc((items(taken) + 1) * sizeof *room->taken);
    room->left = malloc((items(left) + 1) * sizeof *room->left);
    room->conditions = malloc((items(conditions) + 1) * sizeof *room->conditions);
    room->training = malloc((items(training) + 1) * sizeof *room->training);
    room->targets = malloc((items(targets) + 1) * sizeof *room->targets);
    if (room->taken && room->left && room->conditions && room->training && room->targets)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* The entry of the cache, and its target, of (entry, target or None) or None. */
static int look_up_of(PyObject *look_up, Lesson *lesson)
{
    unsigned entry;
    PyObject *target;
    lesson->entry = -1;
    if (look_up == Py_None)
        return 0;
    if (!PyArg_ParseTuple(look_up, "IO", &entry, &target))
        return -1;
    lesson->entry = entry;
    lesson->target.absent = target == Py_None;
    lesson->target.value = lesson->target.absent ? 0 : PyLong_AsUnsignedLongLongMask(target);
    return PyErr_Occurred() ? -1 : 0;
}

/* learn_packet(state, payload, look_up, conditions, taken, next state, path, landing, left, peak, flags, initial,
 * training, targets) -> number of the step */
PyObject *kernel_learn_packet(Kernel *kernel, PyObject *args)
{
    const char *payload;
    Py_ssize_t length;
    Lesson lesson = {.step = {.path = NO_PATH}, .landing = NO_PATH};
    PyObject *look_up, *conditions, *taken, *path, *landing, *left, *training, *targets, *result = NULL;
    Room room = {0};
    if (is_busy(kernel) ||
        !PyArg_ParseTuple(args, "Iy#OO!O!IOOO!IIiO!O!", &lesson.state, &payload, &length, &look_up, &PyTuple_Type,
                          &conditions, &PyTuple_Type, &taken, &lesson.step.state, &path, &landing, &PyTuple_Type, &left,
                          &lesson.peak, &lesson.step.flags, &lesson.effect.initial, &PyTuple_Type, &training,
                          &PyTuple_Type, &targets))
        return NULL;
    if (length > MAX_FRAME) {
        PyErr_SetString(PyExc_ValueError, "the payload is too long");
        return NULL;
    }
    lesson.payload = (const uint8_t *)payload;
    lesson.length = (uint32_t)length;
    lesson.condition_count = items(conditions);
    lesson.taken_count = items(taken);
    lesson.step.left_count = (uint32_t)items(left);
    lesson.effect.training_count = (uint32_t)items(training);
    lesson.effect.target_count = (uint32_t)items(targets);
    lesson.has_effect = lesson.effect.initial >= 0 || items(training) || items(targets);
    if (!make_room(&room, taken, left, conditions, training, targets) && !tops_of(taken, room.taken) &&
        !addresses_of(left, room.left) && !conditions_of(conditions, room.conditions) &&
        !training_of(training, room.training) && !targets_of(targets, room.targets) &&
        !look_up_of(look_up, &lesson) && !path_number(kernel, path, &lesson.step.path) &&
        !path_number(kernel, landing, &lesson.landing)) {
        lesson.taken = room.taken;
        lesson.left = room.left;
        lesson.conditions = room.conditions;
        lesson.training = room.training;
        lesson.targets = room.targets;
        result = packets_learn(&kernel->loop, &kernel->packets, &lesson)
                     ? PyErr_NoMemory()
                     : PyLong_FromSize_t(kernel->loop.step_amount.count);
    }
    release_room(&room);
    return result;
}

/* unlearn_packet(state, payload) */
PyObject *kernel_unlearn_packet(Kernel *kernel, PyObject *args)
{
    unsigned state;
    const char *payload;
    Py_ssize_t length;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "Iy#", &state, &payload, &length))
        return NULL;
    if (packets_unlearn(&kernel->loop, state, (const uint8_t *)payload, (uint32_t)length))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

enum { DATA, TIMES, PRESENT, PREDICTOR, CACHE, KNOWN, BUFFERS };

/* Run until Python is needed, which the kernel spares it for some packets. -1: an exception is set. */
static int run_on(Kernel *kernel, const PacketRun *run, PacketPlace *place, Walk *walk)
{
    int stop = FULL, failed = 0;
    size_t made_at = SIZE_MAX; /* a step that was just made there could not be taken */
    for (;;) {
        Py_BEGIN_ALLOW_THREADS
        while (stop == FULL && !failed) {
            failed = loop_reserve(&kernel->loop);
            if (!failed)
                stop = packets_run(&kernel->loop, &kernel->packets, run, place);
        }
        Py_END_ALLOW_THREADS
        if (failed)
            PyErr_NoMemory();
        if (failed || stop != UNKNOWN || place->at == made_at)
            return failed ? -1 : stop;
        made_at = place->at;
        enum WalkEnd made = kernel_make_packet_step(kernel, run->data + place->at + 1, place->length, walk);
        if (made != WALK_DONE)
            return made == WALK_FAILED ? -1 : stop;
        stop = FULL;
    }
}

static PyObject *run(Kernel *kernel, const PacketRun *run, PacketPlace *place)
{
    Walk *walk = malloc(sizeof *walk);
    if (!walk)
        return PyErr_NoMemory();
    kernel->busy = 1;
    int stop = run_on(kernel, run, place, walk);
    kernel->busy = 0;
    free(walk);
    if (stop < 0)
        return NULL;
    return Py_BuildValue("innII", stop, (Py_ssize_t)place->at, (Py_ssize_t)place->index, place->length, place->step);
}

/* run_packets(data, at, index, length_bits, with_idle, depth, stops_at_sync, times, present, predictor, cache, known)
 * -> (why it stopped, at, index, length of the payload, step) */
PyObject *kernel_run_packets(Kernel *kernel, PyObject *args)
{
    Py_buffer buffers[BUFFERS] = {0};
    Py_ssize_t at, index, depth;
    unsigned length_bits;
    int with_idle, stops_at_sync;
    PyObject *result = NULL;
    if (is_busy(kernel) ||
        !PyArg_ParseTuple(args, "y*nnIpnpz*z*w*w*w*", &buffers[DATA], &at, &index, &length_bits, &with_idle, &depth,
                          &stops_at_sync, &buffers[TIMES], &buffers[PRESENT], &buffers[PREDICTOR], &buffers[CACHE],
                          &buffers[KNOWN]))
        return NULL;
    size_t times = (size_t)buffers[TIMES].len / 8, cached = (size_t)buffers[CACHE].len / 8;
    if (at < 0 || at > buffers[DATA].len || index < 0 || depth < 0 || length_bits > 8 ||
        times > (size_t)buffers[PRESENT].len || cached != (size_t)buffers[KNOWN].len) {
        PyErr_SetString(PyExc_ValueError, "not a part of the data, or tables of other sizes");
    } else {
        PacketRun what = {
            buffers[DATA].buf, (size_t)buffers[DATA].len, (uint8_t)length_bits, with_idle, (size_t)depth, stops_at_sync,
            buffers[TIMES].buf, buffers[PRESENT].buf, times, buffers[PREDICTOR].buf, (size_t)buffers[PREDICTOR].len,
            buffers[CACHE].buf, buffers[KNOWN].buf, cached,
        };
        PacketPlace place = {(size_t)at, (size_t)index, 0, 0};
        result = run(kernel, &what, &place);
    }
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].obj)
            PyBuffer_Release(&buffers[i]);
    return result;
}
