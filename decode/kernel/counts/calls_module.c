/* calls.c as Python has it: `CallWalk`. It keeps the lock of the interpreter. */
#include <Python.h>

#include <stdlib.h>

#include "calls.h"
#include "calls_module.h"

typedef struct {
    PyObject_HEAD
    CallWalk walk;
    PyObject *keys; /* those of the slots, so that no other object gets the address of one */
} WalkObject;

/* learn(state, key, step, following state, begins, low) */
static PyObject *calls_learn(WalkObject *self, PyObject *args)
{
    unsigned state, step;
    unsigned long long begins;
    long long low;
    PyObject *key;
    CallStepInfo info = {0};
    if (!PyArg_ParseTuple(args, "IOIIKL", &state, &key, &step, &info.state, &begins, &low) ||
        PyList_Append(self->keys, key))
        return NULL;
    info.begins = begins;
    info.low = low;
    if (call_walk_learn(&self->walk, state, key, step, info)) {
        PyErr_SetString(PyExc_MemoryError, "no memory, or an older step");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* run(state, keys, at) -> (at, state): take the steps that are known, from a key on, and count them */
static PyObject *calls_run(WalkObject *self, PyObject *args)
{
    unsigned state;
    PyObject *keys;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(args, "IO!n", &state, &PyList_Type, &keys, &at))
        return NULL;
    CallWalk *walk = &self->walk;
    for (Py_ssize_t end = PyList_Size(keys); at < end; at++) {
        PyObject *key = PyList_GetItem(keys, at);
        uint32_t step = key ? call_walk_step(walk, state, key) : NO_STEP;
        if (!key)
            return NULL;
        if (step == NO_STEP)
            break;
        if (call_walk_take(walk, step))
            return PyErr_NoMemory();
        state = walk->steps[step].state;
    }
    return Py_BuildValue("nI", at, state);
}

/* steps(state, keys) -> the steps from there on, as 32-bit numbers, up to the first that is not known */
static PyObject *calls_steps(WalkObject *self, PyObject *args)
{
    unsigned state;
    PyObject *keys;
    if (!PyArg_ParseTuple(args, "IO!", &state, &PyList_Type, &keys))
        return NULL;
    Py_ssize_t end = PyList_Size(keys), count = 0;
    uint32_t *found = malloc(((size_t)end + 1) * sizeof *found);
    if (!found)
        return PyErr_NoMemory();
    for (; count < end; count++) {
        uint32_t step = call_walk_step(&self->walk, state, PyList_GetItem(keys, count));
        if (step == NO_STEP)
            break;
        found[count] = step;
        state = self->walk.steps[step].state;
    }
    PyObject *result = PyBytes_FromStringAndSize((char *)found, count * (Py_ssize_t)sizeof *found);
    free(found);
    return result;
}

/* block() -> (how many functions began, the lowest level) since this was asked last */
static PyObject *calls_block(WalkObject *self, PyObject *none)
{
    (void)none;
    PyObject *result = Py_BuildValue("KL", (unsigned long long)self->walk.begins, (long long)self->walk.low);
    self->walk.begins = 0;
    self->walk.low = INT64_MAX;
    return result;
}

/* tally() -> (the steps that were taken since this was asked last, how often each), as 32-bit numbers */
static PyObject *calls_tally(WalkObject *self, PyObject *none)
{
    (void)none;
    CallWalk *walk = &self->walk;
    size_t count = walk->taken_amount.count;
    uint32_t *times = malloc((count + 1) * sizeof *times);
    if (!times)
        return PyErr_NoMemory();
    for (size_t i = 0; i < count; i++)
        times[i] = walk->steps[walk->taken[i]].times;
    Py_ssize_t size = (Py_ssize_t)(count * sizeof *times);
    PyObject *result = Py_BuildValue("y#y#", (char *)walk->taken, size, (char *)times, size);
    free(times);
    for (size_t i = 0; result && i < count; i++)
        walk->steps[walk->taken[i]].times = 0;
    if (result)
        walk->taken_amount.count = 0;
    return result;
}

static PyObject *walk_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    if (!PyArg_ParseTuple(args, ""))
        return NULL;
    WalkObject *self = (WalkObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self)
        return NULL;
    self->keys = PyList_New(0);
    if (!self->keys || call_walk_init(&self->walk)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void walk_dealloc(WalkObject *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    call_walk_free(&self->walk);
    Py_XDECREF(self->keys);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define METHOD(name, arguments) {#name, (PyCFunction)(void (*)(void))calls_##name, arguments, NULL}

static PyMethodDef walk_methods[] = {
    METHOD(learn, METH_VARARGS), METHOD(run, METH_VARARGS),  METHOD(steps, METH_VARARGS),
    METHOD(block, METH_NOARGS),  METHOD(tally, METH_NOARGS), {0},
};
static PyType_Slot walk_slots[] = {
    {Py_tp_new, (void *)walk_new},
    {Py_tp_dealloc, (void *)walk_dealloc},
    {Py_tp_methods, walk_methods},
    {0},
};
static PyType_Spec walk_spec = {"_kernel.CallWalk", sizeof(WalkObject), 0, Py_TPFLAGS_DEFAULT, walk_slots};

int calls_register(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&walk_spec);
    int failed = !type || PyModule_AddObjectRef(module, "CallWalk", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}
