/* The Python module _kernel: a Kernel is the loop of loop.c, with the paths that its steps append.
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
#include "sources_module.h"
#include "tandem_module.h"

#ifndef KERNEL_SOURCE
#error "setup.py defines KERNEL_SOURCE, by which Python knows which source this was made of, and the limited API"
#endif

int is_busy(const Kernel *kernel)
{
    if (kernel->busy)
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this kernel");
    return kernel->busy;
}

/* Paths */

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

void release_paths(KnownPath *paths, Amount *amount)
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

/* before() -> (now, unsure) before the last timestamp */
static PyObject *kernel_before(Kernel *kernel, PyObject *none)
{
    (void)none;
    if (is_busy(kernel))
        return NULL;
    enum Clock clock = kernel->loop.clock_before;
    if (clock == CLOCK_SET || clock == CLOCK_UNSURE)
        return Py_BuildValue("KO", (unsigned long long)kernel->loop.before, clock == CLOCK_UNSURE ? Py_True : Py_False);
    return Py_BuildValue("OO", Py_None, Py_False);
}

/* place() -> (state, ahead, stack, now, unsure) */
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
    if (loop->clock == CLOCK_SET || loop->clock == CLOCK_UNSURE)
        return Py_BuildValue("ILOKO", loop->state, (long long)loop->ahead, kernel->stack, (unsigned long long)loop->now,
                             loop->clock == CLOCK_UNSURE ? Py_True : Py_False);
    return Py_BuildValue("ILOOO", loop->state, (long long)loop->ahead, kernel->stack, Py_None, Py_False);
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

/* go(state, ahead, stack, now, unsure) */
static PyObject *kernel_go(Kernel *kernel, PyObject *args)
{
    unsigned state;
    long long ahead;
    PyObject *stack, *now;
    int unsure;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "ILOOp", &state, &ahead, &stack, &now, &unsure) ||
        set_stack(kernel, stack))
        return NULL;
    Loop *loop = &kernel->loop;
    loop->state = state;
    loop->ahead = ahead;
    loop->clock = CLOCK_UNSET;
    if (now != Py_None) {
        unsigned long long time = PyLong_AsUnsignedLongLong(now);
        loop->clock = PyErr_Occurred() || time >> 62 ? CLOCK_BEYOND : unsure ? CLOCK_UNSURE : CLOCK_SET;
        loop->now = loop->clock == CLOCK_BEYOND ? 0 : time;
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
    release_paths(kernel->paths, &kernel->path_amount);
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

/* Bytes, and sizes */

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
    release_paths(kernel->paths, &kernel->path_amount);
    release_paths(kernel->guests, &kernel->guest_amount);
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

#define METHOD(name, arguments) {#name, (PyCFunction)(void (*)(void))kernel_##name, arguments, NULL}

static PyMethodDef kernel_methods[] = {
    METHOD(append, METH_O),        METHOD(time, METH_O),         METHOD(place, METH_NOARGS),
    METHOD(before, METH_NOARGS),
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
static PyMethodDef functions[] = {SOURCES_FUNCTIONS, PACKET_FRAMES_FUNCTIONS, {0}};

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
        PyModule_AddStringConstant(module, "SOURCE", KERNEL_SOURCE) ||
        PyModule_AddIntConstant(module, "PYTHON", Py_LIMITED_API) || counts_register(module) ||
        calls_register(module) || tandem_register(module) || walker_register(module) || rows_register(module) ||
        add_encoder_types(module) || hart_register(module)) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
