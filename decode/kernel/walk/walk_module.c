/* The Python module's Walker: see walk.c. */
#include "walk_tables.h"

#include <stdlib.h>

PyObject *addresses_tuple(const uint64_t *addresses, size_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple && i < count; i++) {
        PyObject *address = PyLong_FromUnsignedLongLong(addresses[i]);
        if (!address || PyTuple_SetItem(tuple, (Py_ssize_t)i, address))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The uppermost addresses of a stack, as far as a walk may need them, into `addresses`; how many, -1 if failed. */
static Py_ssize_t stack_from(PyObject *stack, uint64_t *addresses, Py_ssize_t room)
{
    PyObject *frame = stack;
    Py_ssize_t count = 0;
    for (; frame && frame != Py_None && count < room; count++)
        frame = PyTuple_GetItem(frame, 1);
    if (!frame)
        return -1;
    frame = stack;
    for (Py_ssize_t i = count; i > 0; i--) {
        PyObject *address = PyTuple_GetItem(frame, 0);
        addresses[i - 1] = address ? PyLong_AsUnsignedLongLongMask(address) : 0;
        frame = PyTuple_GetItem(frame, 1);
        if (PyErr_Occurred())
            return -1;
    }
    return count;
}

static PyObject *branch_list(const Walk *walk)
{
    PyObject *list = PyList_New((Py_ssize_t)walk->branch_count);
    for (size_t i = 0; list && i < walk->branch_count; i++) {
        PyObject *taken = walk->outcomes_met >> i & 1 ? Py_True : Py_False;
        PyObject *branch = Py_BuildValue("KO", (unsigned long long)walk->branches[i], taken);
        if (!branch || PyList_SetItem(list, (Py_ssize_t)i, branch))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *walk_result(Walk *walk, size_t depth)
{
    PyObject *parts = PyList_New((Py_ssize_t)walk->part_count);
    for (size_t i = 0; parts && i < walk->part_count; i++)
        PyList_SetItem(parts, (Py_ssize_t)i, Py_NewRef(walk->parts[i]));
    PyObject *taken = parts ? addresses_tuple(walk->taken, walk->taken_count) : NULL;
    PyObject *left = taken ? addresses_tuple(walk->left, walk->left_count) : NULL;
    PyObject *branches = left ? branch_list(walk) : NULL;
    PyObject *pc = branches ? walk->last ? PyLong_FromLong(-1) : PyLong_FromUnsignedLongLong(walk->pc) : NULL;
    if (!pc) {
        Py_XDECREF(parts);
        Py_XDECREF(taken);
        Py_XDECREF(left);
        Py_XDECREF(branches);
        return NULL;
    }
    return Py_BuildValue("NNLNNONn", parts, pc, (long long)walk->halfwords, taken, left,
                         walk->last ? walk->last : Py_None, branches,
                         (Py_ssize_t)(walk->peak > depth ? walk->peak - depth : 0));
}

#define MOST_DEPTH 2048

/* walk(pc, outcomes, bits, limit, stack, runs) -> None, or what a walk comes to */
static PyObject *walker_walk(Walker *walker, PyObject *args)
{
    unsigned long long pc, outcomes;
    unsigned bits;
    long long limit;
    PyObject *stack;
    int runs;
    if (!PyArg_ParseTuple(args, "KKILOp", &pc, &outcomes, &bits, &limit, &stack, &runs))
        return NULL;
    if (bits > 63) {
        PyErr_SetString(PyExc_ValueError, "more outcomes than a walk takes here");
        return NULL;
    }
    uint64_t *addresses = NULL;
    Py_ssize_t depth = 0;
    Walk *walk = malloc(sizeof *walk);
    PyObject *result = NULL;
    if (walk && walker->stacked && stack != Py_None)
        addresses = malloc(MOST_DEPTH * sizeof *addresses);
    if (!walk || (walker->stacked && stack != Py_None && !addresses)) {
        free(walk);
        return PyErr_NoMemory();
    }
    if (addresses)
        depth = stack_from(stack, addresses, MOST_DEPTH);
    walk_init(walk, pc, outcomes, bits, limit);
    if (depth >= 0) {
        walk->with_runs = runs;
        walk->stack = addresses;
        walk->depth = walk->peak = (size_t)depth;
        enum WalkEnd end = walk_go(walker, walk);
        if (end == WALK_DONE)
            result = walk_result(walk, (size_t)depth);
        else if (end == WALK_UNUSUAL)
            result = Py_NewRef(Py_None);
    }
    walk_clear(walk);
    free(walk);
    free(addresses);
    return result;
}

static PyObject *walker_forget(Walker *walker, PyObject *none)
{
    (void)none;
    if (walker_forget_segments(walker) | walker_forget_runs(walker))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *walker_sizes(Walker *walker, PyObject *none)
{
    (void)none;
    return Py_BuildValue("nn", (Py_ssize_t)walker->segment_count, (Py_ssize_t)walker->run_count);
}

static PyObject *walker_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const char *const names[4] = {"parts", "count", "_ends", "code"};
    PyObject *segment_at, *run_of, *path_type, *no_code;
    int stacked, lowest_first, falls_through, pops_known, trains;
    Py_ssize_t entries, most_instructions, most_runs;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOOOpppppnnn", &segment_at, &run_of, &path_type, &no_code, &stacked, &lowest_first,
                          &falls_through, &pops_known, &trains, &entries, &most_instructions, &most_runs))
        return NULL;
    if (!PyType_Check(path_type) || entries < 0 || most_runs < 1) {
        PyErr_SetString(PyExc_ValueError, "not a type, or a negative number");
        return NULL;
    }
    Walker *walker = (Walker *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!walker)
        return NULL;
    walker->segment_at = Py_NewRef(segment_at);
    walker->run_of = Py_NewRef(run_of);
    walker->path_type = Py_NewRef(path_type);
    walker->no_code = Py_NewRef(no_code);
    walker->stacked = stacked;
    walker->lowest_first = lowest_first;
    walker->falls_through = falls_through;
    walker->pops_known = pops_known;
    walker->trains = trains;
    walker->entries = (size_t)entries;
    walker->most_instructions = most_instructions;
    walker->most_runs = most_runs;
    int failed = walker_forget_segments(walker) | walker_forget_runs(walker);
    for (int i = 0; i < 4 && !failed; i++)
        failed = !(walker->names[i] = PyUnicode_InternFromString(names[i]));
    if (!failed)
        return (PyObject *)walker;
    Py_DECREF(walker);
    return PyErr_NoMemory();
}

static int walker_traverse(Walker *walker, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)walker));
    Py_VISIT(walker->segment_at);
    Py_VISIT(walker->run_of);
    return 0;
}

static int walker_clear(Walker *walker)
{
    Py_CLEAR(walker->segment_at);
    Py_CLEAR(walker->run_of);
    return 0;
}

static void walker_dealloc(Walker *walker)
{
    PyTypeObject *type = Py_TYPE((PyObject *)walker);
    PyObject_GC_UnTrack(walker);
    walker_clear(walker);
    walker_forget_segments(walker);
    walker_forget_runs(walker);
    free(walker->segments);
    free(walker->runs);
    Py_XDECREF(walker->path_type);
    Py_XDECREF(walker->no_code);
    for (int i = 0; i < 4; i++)
        Py_XDECREF(walker->names[i]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(walker);
    Py_DECREF(type);
}

static PyMethodDef walker_methods[] = {
    {"walk", (PyCFunction)(void (*)(void))walker_walk, METH_VARARGS, NULL},
    {"forget", (PyCFunction)(void (*)(void))walker_forget, METH_NOARGS, NULL},
    {"sizes", (PyCFunction)(void (*)(void))walker_sizes, METH_NOARGS, NULL},
    {0},
};
static PyType_Slot walker_slots[] = {
    {Py_tp_new, (void *)walker_new},           {Py_tp_dealloc, (void *)walker_dealloc},
    {Py_tp_traverse, (void *)walker_traverse}, {Py_tp_clear, (void *)walker_clear},
    {Py_tp_methods, walker_methods},           {0},
};
static PyType_Spec walker_spec = {
    "_kernel.Walker", sizeof(Walker), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, walker_slots,
};

int is_walker(PyObject *object)
{
    return PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)walker_dealloc;
}

int walker_register(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&walker_spec);
    int failed = !type || PyModule_AddObjectRef(module, "Walker", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}
