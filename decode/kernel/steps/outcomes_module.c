/* The Python side of outcomes.c: methods of a Kernel. */
#include "kernel.h"

#include <stdlib.h>

/* Remember the step of a walk: `below` addresses of the call stack stay. Returns its number, 0 for an exception. */
static uint32_t learn_walk(Kernel *kernel, const uint8_t *frame, uint32_t length, const Walk *walk, PyObject *path)
{
    Loop *loop = &kernel->loop;
    int32_t group = kernel->outcomes.states[loop->state].group;
    int64_t following = outcomes_state(&kernel->outcomes, group, walk->pc, 0, 1);
    if (following < 0) {
        PyErr_NoMemory();
        return 0;
    }
    if (add_path(&kernel->paths, &kernel->path_amount, path, walk->count))
        return 0;
    StackTop tops[MOST_TAKEN];
    for (size_t i = 0; i < walk->taken_count; i++)
        tops[i] = (StackTop){walk->taken[i], 0};
    Step step = {
        .state = (uint32_t)following,
        .ahead = (int32_t)walk->halfwords,
        .path = (int32_t)(kernel->path_amount.count - 1),
        .left_count = (uint32_t)walk->left_count,
        .flags = walk->taken_count || walk->left_count ? CALLS : 0,
    };
    if (loop_learn(loop, loop->state, frame, length, 0, tops, walk->taken_count, step, walk->left)) {
        PyErr_NoMemory();
        return 0;
    }
    return (uint32_t)loop->step_amount.count;
}

/* Make the step of a frame that the loop does not know, remember it, and take it. WALK_UNUSUAL: Python has to. */
enum WalkEnd kernel_make_step(Kernel *kernel, const uint8_t *data, Place *place, Walk *walk)
{
    Loop *loop = &kernel->loop;
    const uint8_t *frame = data + place->at;
    walk_init(walk, 0, 0, 0, 0);
    enum WalkEnd end = outcomes_walk(&kernel->outcomes, loop, frame, place->body, walk);
    if (end == WALK_DONE && (walk->halfwords > INT32_MAX || !walk->part_count ||
                             !outcomes_count(&kernel->outcomes, step_size(place->body, walk))))
        end = WALK_UNUSUAL;
    if (end == WALK_DONE) {
        PyObject *path = walk_path(walk);
        uint32_t step = path ? learn_walk(kernel, frame, place->body, walk, path) : 0;
        Py_XDECREF(path);
        if (step && loop_take(loop, step, loop->depth - walk->taken_count, place)) {
            PyErr_NoMemory();
            step = 0;
        }
        end = step ? WALK_DONE : WALK_FAILED;
    }
    walk_clear(walk);
    return end;
}

/* outcomes(fields, limit, shift, mask, successors): see OutcomeField and Trainer; the size of all steps that may be
 * remembered */
PyObject *kernel_outcomes(Kernel *kernel, PyObject *args)
{
    const char *fields, *successors;
    Py_ssize_t length, successor_count;
    unsigned long long limit;
    Trainer trainer;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "y#KIIy#", &fields, &length, &limit, &trainer.shift, &trainer.mask,
                                             &successors, &successor_count))
        return NULL;
    if (length != sizeof kernel->outcomes.fields || successor_count != sizeof trainer.successors ||
        trainer.shift > 63) {
        PyErr_SetString(PyExc_ValueError, "not the fields, or the predictor, that this kernel takes");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < length; i += sizeof(OutcomeField)) {
        OutcomeField field;
        memcpy(&field, fields + i, sizeof field);
        if (field.low > 63 || field.first > 63 || field.bits > 16 || field.count > 63) {
            PyErr_SetString(PyExc_ValueError, "a field beyond 64 bits");
            return NULL;
        }
    }
    memcpy(kernel->outcomes.fields, fields, (size_t)length);
    memcpy(trainer.successors, successors, sizeof trainer.successors);
    kernel->outcomes.trainer = trainer;
    kernel->outcomes.limit = limit;
    Py_RETURN_NONE;
}

/* group(walker) -> number of a new group of states */
PyObject *kernel_group(Kernel *kernel, PyObject *walker)
{
    if (is_busy(kernel))
        return NULL;
    if (!is_walker(walker)) {
        PyErr_SetString(PyExc_TypeError, "not a Walker");
        return NULL;
    }
    int64_t group = -1;
    if (kernel->outcomes.group_amount.count < INT32_MAX)
        group = outcomes_group(&kernel->outcomes, (Walker *)walker);
    return group < 0 ? PyErr_NoMemory() : PyLong_FromLongLong(group);
}

/* state(group, pc, last, shared) -> its number; shared: walks that end at these addresses lead to it */
PyObject *kernel_state(Kernel *kernel, PyObject *args)
{
    int group, shared;
    unsigned long long pc, last;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "iKKp", &group, &pc, &last, &shared))
        return NULL;
    if (group < NO_GROUP || (group >= 0 && (size_t)group >= kernel->outcomes.group_amount.count)) {
        PyErr_SetString(PyExc_ValueError, "there is no such group");
        return NULL;
    }
    int64_t number = outcomes_state(&kernel->outcomes, group, pc, last, shared);
    return number < 0 ? PyErr_NoMemory() : PyLong_FromLongLong(number);
}

/* state_place(number) -> (group, pc, last) */
PyObject *kernel_state_place(Kernel *kernel, PyObject *number)
{
    size_t index = PyLong_AsSize_t(number);
    if (PyErr_Occurred() || is_busy(kernel))
        return NULL;
    if (index >= kernel->outcomes.state_amount.count) {
        PyErr_SetString(PyExc_ValueError, "there is no such state");
        return NULL;
    }
    const KnownState *state = &kernel->outcomes.states[index];
    return Py_BuildValue("iKK", (int)state->group, (unsigned long long)state->pc, (unsigned long long)state->last);
}

/* count(size of steps) -> whether so much may be remembered */
PyObject *kernel_count(Kernel *kernel, PyObject *size)
{
    uint64_t steps = PyLong_AsUnsignedLongLong(size);
    if (PyErr_Occurred() || is_busy(kernel))
        return NULL;
    return PyBool_FromLong(outcomes_count(&kernel->outcomes, steps));
}

/* known(frame) -> the step in this state, or None: (path, next state, ahead, taken count, left, flags, number) */
PyObject *kernel_known(Kernel *kernel, PyObject *frame)
{
    char *bytes;
    Py_ssize_t length;
    size_t below;
    if (is_busy(kernel) || PyBytes_AsStringAndSize(frame, &bytes, &length))
        return NULL;
    uint32_t number = length <= MAX_FRAME
                          ? loop_known(&kernel->loop, (const uint8_t *)bytes, (uint32_t)length, &below)
                          : 0;
    if (!number)
        Py_RETURN_NONE;
    const Step *step = &kernel->loop.steps[number - 1];
    PyObject *left = addresses_tuple(kernel->loop.left + step->left, step->left_count);
    PyObject *path = step->path == NO_PATH ? Py_None : kernel->paths[step->path].object;
    return left ? Py_BuildValue("OIinNII", path, step->state, (int)step->ahead,
                                (Py_ssize_t)(kernel->loop.depth - below), left, step->flags, number)
                : NULL;
}
