/* The Python module _kernel: a Kernel is the loop of loop.c, with the paths that its steps append; and `sort`.
 *
 * Uses the limited API, so that one build is for all Pythons from 3.11 on. _kernel.pyi has the types. */
#include "kernel.h"

#include <stdlib.h>

#include "calls_module.h"
#include "counts_module.h"
#include "encoder_module.h"
#include "hart_module.h"
#include "kernel.h"
#include "packet_frames_module.h"
#include "rows_module.h"
#include "sources.h"
#include "tandem_module.h"

#ifndef KERNEL_SOURCE
#error "setup.py defines KERNEL_SOURCE, by which Python knows which source this was made of"
#endif

#define INDEX_STRIDE 16 /* of the history */
#define REPEATED 8 /* so many equal entries in a row become one */

int is_busy(const Kernel *kernel)
{
    if (kernel->busy)
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this kernel");
    return kernel->busy;
}

/* Paths */

static const KnownPath *path_of(const Kernel *kernel, int32_t path)
{
    return path >= 0 ? &kernel->paths[path] : &kernel->guests[FIRST_GUEST - path];
}

int add_path(KnownPath **paths, Amount *amount, PyObject *object, uint64_t count)
{
    if (array_reserve(paths, amount, 1, sizeof **paths)) {
        PyErr_NoMemory();
        return -1;
    }
    (*paths)[amount->count++] = (KnownPath){Py_NewRef(object), count};
    return 0;
}

static int count_of(PyObject *path, uint64_t *count)
{
    PyObject *number = PyObject_GetAttrString(path, "count");
    if (!number)
        return -1;
    *count = PyLong_AsUnsignedLongLongMask(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static void release(KnownPath *paths, Amount *amount)
{
    size_t count = amount->count;
    amount->count = 0;
    for (size_t i = 0; i < count; i++)
        Py_DECREF(paths[i].object);
}

/* What Python does itself */

static PyObject *kernel_append(Kernel *kernel, PyObject *path)
{
    uint64_t count;
    if (is_busy(kernel) || count_of(path, &count) ||
        add_path(&kernel->guests, &kernel->guest_amount, path, count))
        return NULL;
    if (loop_append(&kernel->loop, FIRST_GUEST - (int32_t)(kernel->guest_amount.count - 1)))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *kernel_time(Kernel *kernel, PyObject *now)
{
    if (is_busy(kernel))
        return NULL;
    uint64_t time = PyLong_AsUnsignedLongLongMask(now);
    if (PyErr_Occurred())
        return NULL;
    if (loop_time(&kernel->loop, time))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* place() -> (state, ahead, stack, now) */
static PyObject *kernel_place(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    Loop *loop = &kernel->loop;
    if (loop->stack_changed) {
        PyObject *stack = stack_tuples(loop->stack, loop->depth, NULL, 0), *before = kernel->stack;
        if (!stack)
            return NULL;
        kernel->stack = stack;
        loop->stack_changed = 0;
        Py_DECREF(before);
    }
    if (loop->clock == CLOCK_SET)
        return Py_BuildValue("ILOK", loop->state, (long long)loop->ahead, kernel->stack, (unsigned long long)loop->now);
    return Py_BuildValue("ILOO", loop->state, (long long)loop->ahead, kernel->stack, Py_None);
}

static int set_stack(Kernel *kernel, PyObject *stack)
{
    Loop *loop = &kernel->loop;
    if (stack == kernel->stack && !loop->stack_changed)
        return 0;
    PyObject *frame = stack;
    size_t depth = 0;
    if (stack != Py_None) {
        PyObject *number = PyTuple_GetItem(stack, 2);
        depth = number ? PyLong_AsSize_t(number) : 0;
    }
    if (!PyErr_Occurred() && depth > loop->max_depth)
        PyErr_SetString(PyExc_ValueError, "the stack is too deep");
    for (size_t i = depth; i > 0 && !PyErr_Occurred(); i--) {
        PyObject *address = PyTuple_GetItem(frame, 0);
        if (!address)
            return -1;
        loop->stack[i - 1] = PyLong_AsUnsignedLongLongMask(address);
        frame = PyTuple_GetItem(frame, 1);
    }
    if (PyErr_Occurred())
        return -1;
    loop->depth = depth;
    loop->stack_changed = 0;
    PyObject *before = kernel->stack;
    kernel->stack = Py_NewRef(stack);
    Py_DECREF(before);
    return 0;
}

/* go(state, ahead, stack, now) */
static PyObject *kernel_go(Kernel *kernel, PyObject *args)
{
    unsigned state;
    long long ahead;
    PyObject *stack, *now;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "ILOO", &state, &ahead, &stack, &now) || set_stack(kernel, stack))
        return NULL;
    Loop *loop = &kernel->loop;
    loop->state = state;
    loop->ahead = ahead;
    loop->clock = CLOCK_UNSET;
    if (now != Py_None) {
        unsigned long long time = PyLong_AsUnsignedLongLong(now);
        loop->clock = PyErr_Occurred() || time >> 62 ? CLOCK_BEYOND : CLOCK_SET;
        loop->now = loop->clock == CLOCK_SET ? time : 0;
        PyErr_Clear(); /* too large a number */
    }
    Py_RETURN_NONE;
}

static PyObject *kernel_accept_earlier_times(Kernel *kernel, PyObject *none)
{
    (void)none;
    kernel->loop.in_order = 0;
    Py_RETURN_NONE;
}

/* flow() -> (enum Flow, where it is in the data, its length) of the last frame about the flow; it is forgotten. */
static PyObject *kernel_flow(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    Loop *loop = &kernel->loop;
    int flow = (int)loop->flow;
    loop->flow = NO_FLOW;
    return Py_BuildValue("inn", flow, (Py_ssize_t)loop->flow_at, (Py_ssize_t)loop->flow_length);
}

/* Steps */

int tops_of(PyObject *taken, StackTop *tops)
{
    Py_ssize_t count = PyTuple_Size(taken);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *address = PyTuple_GetItem(taken, i);
        if (!address)
            return -1;
        tops[i].absent = address == Py_None;
        tops[i].value = tops[i].absent ? 0 : PyLong_AsUnsignedLongLongMask(address);
    }
    return PyErr_Occurred() ? -1 : 0;
}

int addresses_of(PyObject *tuple, uint64_t *addresses)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *address = PyTuple_GetItem(tuple, i);
        if (!address)
            return -1;
        addresses[i] = PyLong_AsUnsignedLongLongMask(address);
    }
    return PyErr_Occurred() ? -1 : 0;
}

int path_number(Kernel *kernel, PyObject *path, int32_t *number)
{
    uint64_t count;
    *number = NO_PATH;
    if (path == Py_None)
        return 0;
    if (count_of(path, &count) || add_path(&kernel->paths, &kernel->path_amount, path, count))
        return -1;
    *number = (int32_t)(kernel->path_amount.count - 1);
    return 0;
}

/* learn(state, frame, ahead, taken, next state, change of ahead, path, left, flags) -> number of the step */
static PyObject *kernel_learn(Kernel *kernel, PyObject *args)
{
    unsigned state;
    const char *frame;
    Py_ssize_t length;
    int ahead;
    PyObject *taken, *path, *left, *result = NULL;
    Step step = {.path = NO_PATH};
    if (is_busy(kernel) ||
        !PyArg_ParseTuple(args, "Iy#iO!IiOO!I", &state, &frame, &length, &ahead, &PyTuple_Type, &taken, &step.state,
                          &step.ahead, &path, &PyTuple_Type, &left, &step.flags))
        return NULL;
    if (length > MAX_FRAME) {
        PyErr_SetString(PyExc_ValueError, "the frame is too long");
        return NULL;
    }
    size_t taken_count = (size_t)PyTuple_Size(taken);
    step.left_count = (uint32_t)PyTuple_Size(left);
    StackTop *tops = malloc((taken_count + 1) * sizeof *tops);
    uint64_t *addresses = malloc((step.left_count + 1) * sizeof *addresses);
    if (!tops || !addresses) {
        PyErr_NoMemory();
        goto done;
    }
    if (tops_of(taken, tops) || addresses_of(left, addresses))
        goto done;
    if (path_number(kernel, path, &step.path))
        goto done;
    if (loop_learn(&kernel->loop, state, (const uint8_t *)frame, (uint32_t)length, ahead, tops, taken_count, step,
                   addresses)) {
        PyErr_NoMemory();
        goto done;
    }
    result = PyLong_FromSize_t(kernel->loop.step_amount.count);
done:
    free(tops);
    free(addresses);
    return result;
}

/* forget(): all steps. Paths that are pending stay until they are taken away. */
static PyObject *kernel_forget(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    Loop *loop = &kernel->loop;
    for (size_t i = 0; i < loop->pending_amount.count; i++) {
        if (loop->pending[i] < 0)
            continue;
        const KnownPath *known = path_of(kernel, loop->pending[i]);
        if (add_path(&kernel->guests, &kernel->guest_amount, known->object, known->count))
            return NULL;
        loop->pending[i] = FIRST_GUEST - (int32_t)(kernel->guest_amount.count - 1);
    }
    loop_forget(loop);
    outcomes_forget(&kernel->outcomes);
    packets_forget(&kernel->packets);
    release(kernel->paths, &kernel->path_amount);
    Py_RETURN_NONE;
}

/* Run until Python is needed, which `*walk` may be spared for some frames. -1: there is no memory, or an exception. */
static int run_on(Kernel *kernel, const uint8_t *data, size_t end, Place *place, Walk *walk)
{
    enum Stop stop = FULL;
    enum WalkEnd made = WALK_DONE;
    int failed = 0;
    while (!failed && (stop == FULL || (stop == UNKNOWN && made == WALK_DONE))) {
        Py_BEGIN_ALLOW_THREADS
        do {
            failed = loop_reserve(&kernel->loop);
            if (!failed)
                stop = loop_run(&kernel->loop, data, end, place);
        } while (stop == FULL && !failed);
        Py_END_ALLOW_THREADS
        if (failed)
            PyErr_NoMemory();
        else if (stop == UNKNOWN)
            made = kernel_make_step(kernel, data, place, walk);
    }
    return failed || made == WALK_FAILED ? -1 : (int)stop;
}

/* run(data, at, end) -> (enum Stop, at, length, length of the body, step) */
static PyObject *kernel_run(Kernel *kernel, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t at, end;
    Place place = {0};
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "y*nn", &data, &at, &end))
        return NULL;
    if (at < 0 || at > end || end > data.len) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_ValueError, "not a part of the data");
        return NULL;
    }
    Walk *walk = malloc(sizeof *walk);
    int stop = -1;
    place.at = (size_t)at;
    kernel->busy = 1;
    if (walk)
        stop = run_on(kernel, data.buf, (size_t)end, &place, walk);
    else
        PyErr_NoMemory();
    kernel->busy = 0;
    free(walk);
    PyBuffer_Release(&data);
    if (stop < 0)
        return NULL;
    return Py_BuildValue("inIII", stop, (Py_ssize_t)place.at, place.length, place.body, place.step);
}

/* What ran */

/* Positions in the history, and times, as they become arrays. */
typedef struct {
    uint64_t *index, *positions, *times;
    size_t index_count, time_count;
} Columns;

static void add_times(Columns *columns, const Loop *loop, size_t *mark, size_t before, size_t first, uint64_t position,
                      uint64_t count)
{
    for (; *mark < loop->mark_amount.count && loop->marks[*mark].path < before; ++*mark) {
        uint64_t here = position + (loop->marks[*mark].path - first) * count;
        if (columns->time_count && columns->positions[columns->time_count - 1] == here)
            columns->time_count--; /* of several at one position, the last one stays */
        columns->positions[columns->time_count] = here;
        columns->times[columns->time_count++] = loop->marks[*mark].time;
    }
}

/* Append everything pending to the list `entries`, whose instructions end at *length. `repeated` makes one entry of
 * equal ones. */
static int flush_to(const Kernel *kernel, PyObject *entries, uint64_t *length, PyObject *repeated, Columns *columns)
{
    const Loop *loop = &kernel->loop;
    size_t pending = loop->pending_amount.count, mark = 0, entry_count = (size_t)PyList_Size(entries);
    for (size_t first = 0, next; first < pending; first = next) {
        const KnownPath *path = path_of(kernel, loop->pending[first]);
        for (next = first + 1; next < pending; next++)
            if (path_of(kernel, loop->pending[next])->object != path->object)
                break;
        add_times(columns, loop, &mark, next, first, *length, path->count);
        PyObject *entry = path->object, *made = NULL;
        size_t count = next - first, times = 1;
        if (count >= REPEATED) {
            made = entry = PyObject_CallFunction(repeated, "On", entry, (Py_ssize_t)count);
            if (!made)
                return -1;
            times = count;
            count = 1;
        }
        int failed = 0;
        for (size_t i = 0; i < count && !failed; i++) {
            if (entry_count++ % INDEX_STRIDE == 0)
                columns->index[columns->index_count++] = *length;
            failed = PyList_Append(entries, entry);
            *length += times * path->count;
        }
        Py_XDECREF(made);
        if (failed)
            return -1;
    }
    add_times(columns, loop, &mark, SIZE_MAX, pending, *length, 0);
    return 0;
}

/* flush(entries, length, repeated) -> (length, index, positions, times), the last three as bytes of 64-bit numbers */
static PyObject *kernel_flush(Kernel *kernel, PyObject *args)
{
    PyObject *entries, *repeated, *result = NULL;
    unsigned long long length_before;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "O!KO", &PyList_Type, &entries, &length_before, &repeated))
        return NULL;
    Loop *loop = &kernel->loop;
    uint64_t length = length_before;
    size_t number = sizeof(uint64_t), marks = loop->mark_amount.count;
    Columns columns = {
        malloc((loop->pending_amount.count / INDEX_STRIDE + 2) * number),
        malloc((marks + 1) * number),
        malloc((marks + 1) * number),
        0,
        0,
    };
    if (!columns.index || !columns.positions || !columns.times) {
        PyErr_NoMemory();
        goto done;
    }
    kernel->busy = 1;
    int failed = flush_to(kernel, entries, &length, repeated, &columns);
    kernel->busy = 0;
    if (failed)
        goto done;
    loop->pending_amount.count = loop->mark_amount.count = 0;
    release(kernel->guests, &kernel->guest_amount);
    result = Py_BuildValue("Ky#y#y#", (unsigned long long)length, (char *)columns.index,
                           (Py_ssize_t)(columns.index_count * number), (char *)columns.positions,
                           (Py_ssize_t)(columns.time_count * number), (char *)columns.times,
                           (Py_ssize_t)(columns.time_count * number));
done:
    free(columns.index);
    free(columns.positions);
    free(columns.times);
    return result;
}

static PyObject *kernel_idle(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    uint64_t idle = kernel->loop.idle;
    kernel->loop.idle = 0;
    return PyLong_FromUnsignedLongLong(idle);
}

static PyObject *kernel_unused(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    uint64_t unused = kernel->loop.unused;
    kernel->loop.unused = 0;
    return PyLong_FromUnsignedLongLong(unused);
}

static PyObject *kernel_sizes(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    size_t paths = kernel->path_amount.capacity + kernel->guest_amount.capacity;
    return Py_BuildValue("nnnn", (Py_ssize_t)kernel->loop.step_amount.count, (Py_ssize_t)kernel->path_amount.count,
                         (Py_ssize_t)kernel->guest_amount.count,
                         (Py_ssize_t)(loop_memory(&kernel->loop) + outcomes_memory(&kernel->outcomes) +
                                      packets_memory(&kernel->packets) + paths * sizeof(KnownPath)));
}

/* The type and the module */

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    const char *kinds;
    Py_ssize_t kinds_length, max_depth, kept_depth;
    int timed, xor_times;
    unsigned time_bits;
    if (!PyArg_ParseTuple(args, "y#ppInn", &kinds, &kinds_length, &timed, &xor_times, &time_bits, &max_depth,
                          &kept_depth))
        return NULL;
    if (kinds_length != FIRST_BYTES * sizeof(FrameKind) || max_depth <= 0 || kept_depth > max_depth) {
        PyErr_SetString(PyExc_ValueError, "not the kinds of frames, or depths, that this kernel takes");
        return NULL;
    }
    Kernel *kernel = (Kernel *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!kernel)
        return NULL;
    kernel->stack = Py_NewRef(Py_None);
    memcpy(kernel->loop.kinds, kinds, sizeof kernel->loop.kinds);
    kernel->loop.timed = timed;
    kernel->loop.xor_times = xor_times;
    kernel->loop.time_bits = time_bits;
    if (loop_init(&kernel->loop, (size_t)max_depth, (size_t)kept_depth) || outcomes_init(&kernel->outcomes)) {
        Py_DECREF(kernel);
        return PyErr_NoMemory();
    }
    return (PyObject *)kernel;
}

static void kernel_dealloc(Kernel *kernel)
{
    release(kernel->paths, &kernel->path_amount);
    release(kernel->guests, &kernel->guest_amount);
    free(kernel->paths);
    free(kernel->guests);
    loop_free(&kernel->loop);
    outcomes_free(&kernel->outcomes);
    packets_free(&kernel->packets);
    Py_XDECREF(kernel->stack);
    PyTypeObject *type = Py_TYPE((PyObject *)kernel);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(kernel);
    Py_DECREF(type);
}

static PyObject *listed(const SortedFrames *sorted)
{
    PyObject *list = PyList_New((Py_ssize_t)sorted->count);
    for (size_t i = 0; list && i < sorted->count; i++) {
        const Source *source = &sorted->sources[i];
        PyObject *item = Py_BuildValue("Iy#y#", source->number, (char *)source->bytes, (Py_ssize_t)source->length,
                                       (char *)source->runs, (Py_ssize_t)(source->run_count * sizeof(SourceRun)));
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* sort(data, low, bits) -> (idle bytes, [(number, frames, runs)]), or None if there are others than frames */
static PyObject *kernel_sort(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    unsigned low, bits;
    if (!PyArg_ParseTuple(args, "y*II", &data, &low, &bits))
        return NULL;
    if (low + bits > 48 || bits > 16 || data.len > UINT32_MAX) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_ValueError, "too wide a number, or too much data");
        return NULL;
    }
    SortedFrames sorted;
    enum Sorted how;
    Py_BEGIN_ALLOW_THREADS
    how = sources_sort(&sorted, data.buf, (size_t)data.len, low, bits);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    PyObject *result = NULL;
    if (how == SORTED) {
        PyObject *list = listed(&sorted);
        result = list ? Py_BuildValue("KN", (unsigned long long)sorted.idle, list) : NULL;
    } else {
        result = how == NO_MEMORY ? PyErr_NoMemory() : Py_NewRef(Py_None);
    }
    sources_free(&sorted);
    return result;
}

#define METHOD(name, arguments) {#name, (PyCFunction)(void (*)(void))kernel_##name, arguments, NULL}

static PyMethodDef kernel_methods[] = {
    METHOD(append, METH_O),        METHOD(time, METH_O),         METHOD(place, METH_NOARGS),
    METHOD(go, METH_VARARGS),      METHOD(flow, METH_NOARGS),    METHOD(accept_earlier_times, METH_NOARGS),
    METHOD(learn, METH_VARARGS),   METHOD(forget, METH_NOARGS),  METHOD(run, METH_VARARGS),
    METHOD(flush, METH_VARARGS),   METHOD(idle, METH_NOARGS),    METHOD(sizes, METH_NOARGS),
    METHOD(outcomes, METH_VARARGS), METHOD(group, METH_O),       METHOD(state, METH_VARARGS),
    METHOD(state_place, METH_O),   METHOD(count, METH_O),        METHOD(known, METH_O),
    METHOD(learn_packet, METH_VARARGS),
    METHOD(unlearn_packet, METH_VARARGS),
    METHOD(run_packets, METH_VARARGS), METHOD(unused, METH_NOARGS),
    {0},
};
static PyMethodDef functions[] = {METHOD(sort, METH_VARARGS), PACKET_FRAMES_FUNCTIONS, {0}};

static PyType_Slot kernel_slots[] = {
    {Py_tp_new, (void *)kernel_new},
    {Py_tp_dealloc, (void *)kernel_dealloc},
    {Py_tp_methods, kernel_methods},
    {0},
};
static PyType_Spec kernel_spec = {"_kernel.Kernel", sizeof(Kernel), 0, Py_TPFLAGS_DEFAULT, kernel_slots};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    PyObject *module = PyModule_Create(&definition), *type = module ? PyType_FromSpec(&kernel_spec) : NULL;
    if (!type || PyModule_AddObjectRef(module, "Kernel", type) ||
        PyModule_AddStringConstant(module, "SOURCE", KERNEL_SOURCE) || counts_register(module) ||
        calls_register(module) || tandem_register(module) || walker_register(module) || rows_register(module) ||
        add_encoder_types(module) || hart_register(module)) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
