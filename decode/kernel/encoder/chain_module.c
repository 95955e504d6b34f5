/* The Python type Chain: objects by number, appended to a list as their numbers follow each other (chain.h). It keeps the
 * interpreter's lock and calls nothing of Python. */
#include <stdlib.h>

#include "chain.h"
#include "encoder_module.h"

typedef struct {
    PyObject_HEAD
    LinkChain chain;
    PyObject **objects; /* as many as links */
    size_t capacity;
} Chain;

/* add(object, weight): the next number */
static PyObject *chain_take(Chain *self, PyObject *args)
{
    PyObject *object;
    unsigned weight;
    if (!PyArg_ParseTuple(args, "OI", &object, &weight))
        return NULL;
    if (self->chain.count == self->capacity) {
        size_t capacity = self->capacity ? 2 * self->capacity : 256;
        PyObject **objects = realloc(self->objects, capacity * sizeof *objects);
        if (!objects)
            return PyErr_NoMemory();
        self->objects = objects;
        self->capacity = capacity;
    }
    size_t number = self->chain.count;
    if (number >= UINT32_MAX - 1 || chain_add(&self->chain, weight))
        return PyErr_NoMemory();
    self->objects[number] = Py_NewRef(object);
    Py_RETURN_NONE;
}

static int is_number(const Chain *self, unsigned number)
{
    if (number >= self->chain.count)
        PyErr_SetString(PyExc_IndexError, "there is no such number");
    return number < self->chain.count;
}

/* set(number, object, weight): what has this number now */
static PyObject *chain_set(Chain *self, PyObject *args)
{
    PyObject *object;
    unsigned number, weight;
    if (!PyArg_ParseTuple(args, "IOI", &number, &object, &weight) || !is_number(self, number))
        return NULL;
    PyObject *before = self->objects[number];
    self->objects[number] = Py_NewRef(object);
    self->chain.links[number].weight = weight;
    Py_DECREF(before);
    Py_RETURN_NONE;
}

/* pair(before, after): the second number may follow the first */
static PyObject *chain_link(Chain *self, PyObject *args)
{
    unsigned before, after;
    if (!PyArg_ParseTuple(args, "II", &before, &after) || !is_number(self, before) || !is_number(self, after))
        return NULL;
    if (chain_pair(&self->chain, before, after))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* run(words, at, last, out) -> (at, last, weight): append to *out* the object of each number that a known one follows */
static PyObject *chain_run(Chain *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t at;
    unsigned last;
    PyObject *out;
    if (!PyArg_ParseTuple(args, "y*nIO!", &data, &at, &last, &PyList_Type, &out))
        return NULL;
    const uint32_t *words = data.buf;
    Py_ssize_t end = data.len / (Py_ssize_t)sizeof *words;
    unsigned long long weight = 0;
    int failed = at < 0 || (uintptr_t)words % sizeof *words || !is_number(self, last);
    for (; !failed && at < end; at++) {
        uint32_t word = words[at];
        if (word >= self->chain.count || !chain_has(&self->chain, last, word))
            break;
        failed = PyList_Append(out, self->objects[last]);
        weight += self->chain.links[last].weight;
        last = word;
    }
    PyBuffer_Release(&data);
    if (!failed)
        return Py_BuildValue("nIK", at, last, weight);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "not a position in words");
    return NULL;
}

static void chain_dealloc(Chain *self)
{
    for (size_t i = 0; i < self->chain.count; i++)
        Py_DECREF(self->objects[i]);
    free(self->objects);
    chain_free(&self->chain);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define METHOD(name, function, arguments) {name, (PyCFunction)(void (*)(void))function, arguments, NULL}

static PyMethodDef chain_methods[] = {
    METHOD("add", chain_take, METH_VARARGS),
    METHOD("set", chain_set, METH_VARARGS),
    METHOD("pair", chain_link, METH_VARARGS),
    METHOD("run", chain_run, METH_VARARGS),
    {0},
};
static PyType_Slot chain_slots[] = {
    {Py_tp_dealloc, (void *)chain_dealloc},
    {Py_tp_methods, chain_methods},
    {0},
};
PyType_Spec chain_spec = {"_kernel.Chain", sizeof(Chain), 0, Py_TPFLAGS_DEFAULT, chain_slots};
