/* counts.c as Python has it: `Parts`, and `Executions`, which counts in them. Both keep the lock of the interpreter. */
#include <Python.h>

#include <stdlib.h>

#include "counts.h"
#include "counts_module.h"

typedef struct {
    PyObject_HEAD
    Parts parts;
    PyObject *path_type, *rounds_type;
} PartsObject;

typedef struct {
    PyObject_HEAD
    PartsObject *of;
    Tallies tallies;
    size_t part_room, address_room;
    size_t left; /* parts that are not spread yet */
    size_t address_count; /* those that these parts have */
    int spreading;
} ExecutionsObject;

/* Parts */

static int address_of(Parts *parts, PyObject *number, uint32_t *address)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (PyErr_Occurred())
        return -1;
    if (value < 0 && !overflow)
        *address = GAP_NUMBER;
    else if ((*address = parts_address(parts, PyLong_AsUnsignedLongLongMask(number))) == NO_NUMBER)
        PyErr_NoMemory();
    return PyErr_Occurred() ? -1 : 0;
}

static int number_of(PartsObject *self, PyObject *object, uint32_t *number);

/* The numbers of what is in a tuple: addresses, or parts, of which the empty ones are left out. -1 on an error. */
static Py_ssize_t items_of(PartsObject *self, PyObject *tuple, uint32_t kind, uint32_t **items)
{
    Py_ssize_t size = PyTuple_Size(tuple), count = 0;
    *items = size < 0 ? NULL : malloc(((size_t)size + 1) * sizeof **items);
    if (!*items) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        uint32_t *to = *items + count;
        if (!item || (kind == ADDRESSES ? address_of(&self->parts, item, to) : number_of(self, item, to)))
            return -1;
        count += *to != NO_NUMBER;
    }
    return count;
}

static int add_part(PartsObject *self, PyObject *object, PyObject *tuple, Part part, uint32_t *number)
{
    uint32_t *items;
    Py_ssize_t count = items_of(self, tuple, part.kind, &items);
    *number = NO_NUMBER;
    if (count > 0 && part.times) {
        part.object = object;
        part.count = (uint32_t)count;
        if (count >= NO_NUMBER || parts_add(&self->parts, part, items)) {
            PyErr_NoMemory();
        } else {
            Py_INCREF(object); /* else another one could get its address */
            *number = (uint32_t)(self->parts.part_amount.count - 1);
        }
    }
    free(items);
    return PyErr_Occurred() ? -1 : 0;
}

static int add_path(PartsObject *self, PyObject *path, uint32_t *number)
{
    PyObject *inner = PyObject_GetAttrString(path, "parts");
    int failed = !inner || add_part(self, path, inner, (Part){.kind = PATH, .times = 1}, number);
    Py_XDECREF(inner);
    return failed ? -1 : 0;
}

static int add_rounds(PartsObject *self, PyObject *rounds, uint32_t *number)
{
    PyObject *path = PyObject_GetAttrString(rounds, "path"), *times = PyObject_GetAttrString(rounds, "times");
    PyObject *inner = path && times ? PyTuple_Pack(1, path) : NULL;
    uint64_t count = inner ? PyLong_AsUnsignedLongLongMask(times) : 0;
    int failed = PyErr_Occurred() || add_part(self, rounds, inner, (Part){.kind = ROUNDS, .times = count}, number);
    Py_XDECREF(path);
    Py_XDECREF(times);
    Py_XDECREF(inner);
    return failed ? -1 : 0;
}

static int add_object(PartsObject *self, PyObject *object, uint32_t *number)
{
    PyObject *type = (PyObject *)Py_TYPE(object);
    if (PyTuple_Check(object))
        return add_part(self, object, object, (Part){.kind = ADDRESSES, .times = 1}, number);
    if (type == self->path_type)
        return add_path(self, object, number);
    if (type == self->rounds_type)
        return add_rounds(self, object, number);
    PyErr_SetString(PyExc_TypeError, "not a part of a history");
    return -1;
}

/* The number of a part, NO_NUMBER of an empty one. A new one is added, after what it contains. */
static int number_of(PartsObject *self, PyObject *object, uint32_t *number)
{
    *number = parts_number(&self->parts, object);
    if (*number != NO_NUMBER)
        return 0;
    if (Py_EnterRecursiveCall(" in the parts of a history"))
        return -1;
    int failed = add_object(self, object, number);
    Py_LeaveRecursiveCall();
    return failed;
}

/* add_step(part, last, trapped) */
static PyObject *counts_add_step(PartsObject *self, PyObject *args)
{
    PyObject *object, *last;
    PartStep step = {.before = NO_NUMBER};
    if (!PyArg_ParseTuple(args, "OOp", &object, &last, &step.trapped) || number_of(self, object, &step.part) ||
        (last != Py_None && address_of(&self->parts, last, &step.before)))
        return NULL;
    if (step.part == NO_NUMBER) {
        PyErr_SetString(PyExc_ValueError, "an empty part");
        return NULL;
    }
    if (array_reserve(&self->parts.steps, &self->parts.step_amount, 1, sizeof step))
        return PyErr_NoMemory();
    self->parts.steps[self->parts.step_amount.count++] = step;
    Py_RETURN_NONE;
}

/* addresses() -> list of all, by number */
static PyObject *counts_addresses(PartsObject *self, PyObject *none)
{
    (void)none;
    const Parts *parts = &self->parts;
    PyObject *list = PyList_New((Py_ssize_t)parts->address_amount.count);
    for (size_t i = 0; list && i < parts->address_amount.count; i++) {
        PyObject *address = i == GAP_NUMBER ? PyLong_FromLong(-1) : PyLong_FromUnsignedLongLong(parts->addresses[i]);
        if (!address || PyList_SetItem(list, (Py_ssize_t)i, address)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* size() -> (addresses, parts, steps) */
static PyObject *counts_size(PartsObject *self, PyObject *none)
{
    (void)none;
    return Py_BuildValue("nnn", (Py_ssize_t)self->parts.address_amount.count,
                         (Py_ssize_t)self->parts.part_amount.count, (Py_ssize_t)self->parts.step_amount.count);
}

/* Matches */

typedef struct {
    Py_buffer flags, inner, ends;
    Matches matches;
} Question;

static void leave(Question *question)
{
    PyBuffer_Release(&question->flags);
    PyBuffer_Release(&question->inner);
    PyBuffer_Release(&question->ends);
}

/* Whether the buffers have as much as the parts need, which were counted when these were made. */
static int fits(const PartsObject *self, Question *question)
{
    question->matches = (Matches){question->inner.buf, question->ends.buf, (size_t)question->ends.len};
    if ((size_t)question->flags.len >= self->parts.address_amount.count &&
        (size_t)question->inner.len == question->matches.count * sizeof(uint64_t))
        return 1;
    leave(question);
    PyErr_SetString(PyExc_ValueError, "there are more parts now");
    return 0;
}

/* match(flags, inner, ends, from, to): the last two bytearrays are filled in from one number up to another */
static PyObject *counts_match(PartsObject *self, PyObject *args)
{
    Question question;
    Py_ssize_t from, to;
    if (!PyArg_ParseTuple(args, "y*w*w*nn", &question.flags, &question.inner, &question.ends, &from, &to) ||
        !fits(self, &question))
        return NULL;
    int failed = from < 0 || to > (Py_ssize_t)question.matches.count ||
                 question.matches.count > self->parts.part_amount.count;
    if (!failed && from < to)
        parts_match(&self->parts, question.flags.buf, &question.matches, (size_t)from, (size_t)to);
    leave(&question);
    if (failed)
        PyErr_SetString(PyExc_ValueError, "there are no such parts");
    return failed ? NULL : Py_NewRef(Py_None);
}

/* before(flags) -> for each address, whether it may run directly before one that is wanted */
static PyObject *counts_before(PartsObject *self, PyObject *args)
{
    Py_buffer flags;
    if (!PyArg_ParseTuple(args, "y*", &flags))
        return NULL;
    size_t count = self->parts.address_amount.count;
    uint8_t *marks = (size_t)flags.len >= count ? calloc(count, 1) : NULL;
    if (marks)
        parts_mark_before(&self->parts, flags.buf, marks);
    PyBuffer_Release(&flags);
    PyObject *result = marks ? PyBytes_FromStringAndSize((char *)marks, (Py_ssize_t)count) : PyErr_NoMemory();
    free(marks);
    return result;
}

static int is_step(const PartsObject *self, const Question *question, uint32_t step)
{
    if (step < self->parts.step_amount.count && self->parts.steps[step].part < question->matches.count)
        return 1;
    PyErr_SetString(PyExc_ValueError, "there is no such step");
    return 0;
}

/* counts(flags, inner, ends, entered, steps) -> the matches in the entry that each leads to, as 64-bit numbers */
static PyObject *counts_counts(PartsObject *self, PyObject *args)
{
    Question question;
    Py_buffer steps;
    int entered, failed = 0;
    if (!PyArg_ParseTuple(args, "y*y*y*py*", &question.flags, &question.inner, &question.ends, &entered, &steps))
        return NULL;
    if (!fits(self, &question)) {
        PyBuffer_Release(&steps);
        return NULL;
    }
    size_t count = (size_t)steps.len / sizeof(uint32_t);
    uint64_t *found = malloc((count + 1) * sizeof *found);
    const uint32_t *numbers = steps.buf;
    for (size_t i = 0; found && !failed && i < count; i++) {
        failed = !is_step(self, &question, numbers[i]);
        if (!failed)
            found[i] = step_matches(&self->parts, question.flags.buf, &question.matches, numbers[i], entered);
    }
    leave(&question);
    PyBuffer_Release(&steps);
    PyObject *result = failed ? NULL
                       : found ? PyBytes_FromStringAndSize((char *)found, (Py_ssize_t)(count * sizeof *found))
                               : PyErr_NoMemory();
    free(found);
    return result;
}

/* total(flags, inner, ends, entered, steps, times) -> the matches in the entries that these lead to so many times */
static PyObject *counts_total(PartsObject *self, PyObject *args)
{
    Question question;
    Py_buffer steps, times;
    int entered;
    if (!PyArg_ParseTuple(args, "y*y*y*py*y*", &question.flags, &question.inner, &question.ends, &entered, &steps,
                          &times))
        return NULL;
    const uint32_t *numbers = steps.buf, *factors = times.buf;
    unsigned long long total = 0;
    int failed = !fits(self, &question);
    if (!failed) {
        for (size_t i = 0; i < (size_t)steps.len / sizeof *numbers && !failed; i++) {
            failed = i >= (size_t)times.len / sizeof *factors || !is_step(self, &question, numbers[i]);
            if (!failed)
                total += factors[i] *
                         step_matches(&self->parts, question.flags.buf, &question.matches, numbers[i], entered);
        }
        leave(&question);
    }
    PyBuffer_Release(&steps);
    PyBuffer_Release(&times);
    if (failed && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "fewer numbers than steps");
    return failed ? NULL : PyLong_FromUnsignedLongLong(total);
}

/* excluded(flags) -> the steps to an entry that begins with what is wanted, from an instruction that excludes it */
static PyObject *counts_excluded(PartsObject *self, PyObject *args)
{
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "y*", &buffer))
        return NULL;
    const Parts *parts = &self->parts;
    const uint8_t *flags = buffer.buf;
    PyObject *list = (size_t)buffer.len >= parts->address_amount.count ? PyList_New(0) : PyErr_NoMemory();
    for (size_t i = 0; list && i < parts->step_amount.count; i++) {
        const PartStep *step = &parts->steps[i];
        if (step->trapped || step->before == NO_NUMBER || !(flags[step->before] & EXCLUDES_NEXT) ||
            !(flags[parts->parts[step->part].first] & WANTED))
            continue;
        PyObject *number = PyLong_FromSize_t(i);
        int failed = !number || PyList_Append(list, number);
        Py_XDECREF(number);
        if (failed)
            Py_CLEAR(list);
    }
    PyBuffer_Release(&buffer);
    return list;
}

/* Executions */

static int make_room(ExecutionsObject *self)
{
    if (self->spreading)
        PyErr_SetString(PyExc_ValueError, "these are counted");
    else if (tallies_grow(&self->tallies, &self->of->parts, &self->part_room, &self->address_room))
        PyErr_NoMemory();
    return PyErr_Occurred() ? -1 : 0;
}

/* add_steps(steps, times): two buffers of 32-bit numbers */
static PyObject *counts_add_steps(ExecutionsObject *self, PyObject *args)
{
    Py_buffer steps, times;
    if (!PyArg_ParseTuple(args, "y*y*", &steps, &times))
        return NULL;
    const Parts *parts = &self->of->parts;
    const uint32_t *numbers = steps.buf, *counts = times.buf;
    size_t count = (size_t)steps.len / sizeof *numbers;
    int failed = steps.len != times.len || make_room(self);
    for (size_t i = 0; i < count && !failed; i++) {
        failed = numbers[i] >= parts->step_amount.count;
        if (failed)
            break;
        const PartStep *step = &parts->steps[numbers[i]];
        self->tallies.times[step->part] += counts[i];
        if (step->before != NO_NUMBER)
            failed = tallies_transition(&self->tallies, step->before, parts->parts[step->part].first, counts[i]);
    }
    PyBuffer_Release(&steps);
    PyBuffer_Release(&times);
    if (failed && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "there are no such steps, or there is not enough memory");
    return failed ? NULL : Py_NewRef(Py_None);
}

/* Count an entry after the one before, whose number it replaces. */
static int add_entry(ExecutionsObject *self, PyObject *entry, uint32_t *before)
{
    uint32_t number;
    if (!entry || number_of(self->of, entry, &number))
        return -1;
    if (number == NO_NUMBER)
        return 0;
    const Parts *parts = &self->of->parts;
    if (number >= self->part_room && make_room(self))
        return -1;
    self->tallies.times[number]++;
    uint32_t last = *before;
    *before = number;
    if (last != NO_NUMBER &&
        tallies_transition(&self->tallies, parts->parts[last].last, parts->parts[number].first, 1)) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* add_entries(entries, begin, end): those of a list, each after the one before, which may be before `begin` */
static PyObject *counts_add_entries(ExecutionsObject *self, PyObject *args)
{
    PyObject *entries;
    Py_ssize_t begin, end;
    if (!PyArg_ParseTuple(args, "O!nn", &PyList_Type, &entries, &begin, &end) || make_room(self))
        return NULL;
    uint32_t before = NO_NUMBER;
    for (Py_ssize_t i = begin - 1; i >= 0 && before == NO_NUMBER; i--) {
        PyObject *entry = PyList_GetItem(entries, i);
        if (!entry || number_of(self->of, entry, &before))
            return NULL;
    }
    for (Py_ssize_t i = begin; i < end; i++)
        if (add_entry(self, PyList_GetItem(entries, i), &before))
            return NULL;
    Py_RETURN_NONE;
}

/* spread(count) -> how many parts are left: count what is in so many more parts as often as these ran */
static PyObject *counts_spread(ExecutionsObject *self, PyObject *args)
{
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "n", &count) || (!self->spreading && make_room(self)))
        return NULL;
    if (!self->spreading) {
        self->left = self->of->parts.part_amount.count;
        self->address_count = self->of->parts.address_amount.count;
        self->spreading = 1;
    }
    size_t to = self->left, from = count > 0 && (size_t)count < to ? to - (size_t)count : 0;
    if (tallies_spread(&self->tallies, &self->of->parts, from, to))
        return PyErr_NoMemory();
    self->left = from;
    return PyLong_FromSize_t(from);
}

/* result() -> (how often each address ran, as 64-bit numbers, [(from, to, times)]), both by number */
static PyObject *counts_result(ExecutionsObject *self, PyObject *none)
{
    (void)none;
    const Tallies *tallies = &self->tallies;
    if (!self->spreading || self->left) {
        PyErr_SetString(PyExc_ValueError, "not everything is counted");
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i <= tallies->transition_mask; i++) {
        const Transition *one = &tallies->transitions[i];
        if (one->from == NO_NUMBER || !one->times)
            continue;
        PyObject *item = Py_BuildValue("IIK", one->from, one->to, (unsigned long long)one->times);
        int failed = !item || PyList_Append(list, item);
        Py_XDECREF(item);
        if (failed)
            Py_CLEAR(list);
    }
    size_t bytes = self->address_count * sizeof *tallies->ran;
    return list ? Py_BuildValue("y#N", (char *)tallies->ran, (Py_ssize_t)bytes, list) : NULL;
}

/* The types */

static PyObject *parts_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *path_type, *rounds_type;
    if (!PyArg_ParseTuple(args, "OO", &path_type, &rounds_type))
        return NULL;
    PartsObject *self = (PartsObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self)
        return NULL;
    self->path_type = Py_NewRef(path_type);
    self->rounds_type = Py_NewRef(rounds_type);
    if (parts_init(&self->parts)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static void parts_dealloc(PartsObject *self)
{
    for (size_t i = 0; i < self->parts.part_amount.count; i++)
        Py_DECREF((PyObject *)self->parts.parts[i].object);
    parts_free(&self->parts);
    Py_XDECREF(self->path_type);
    Py_XDECREF(self->rounds_type);
    free_object((PyObject *)self);
}

static int are_parts(PyObject *object)
{
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)parts_dealloc)
        return 1;
    PyErr_SetString(PyExc_TypeError, "not parts");
    return 0;
}

static PyObject *executions_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *of;
    if (!PyArg_ParseTuple(args, "O", &of) || !are_parts(of))
        return NULL;
    ExecutionsObject *self = (ExecutionsObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self)
        return NULL;
    self->of = (PartsObject *)Py_NewRef(of);
    if (tallies_init(&self->tallies)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void executions_dealloc(ExecutionsObject *self)
{
    tallies_free(&self->tallies);
    Py_XDECREF((PyObject *)self->of);
    free_object((PyObject *)self);
}

#define METHOD(name, arguments) {#name, (PyCFunction)(void (*)(void))counts_##name, arguments, NULL}

static PyMethodDef parts_methods[] = {
    METHOD(add_step, METH_VARARGS), METHOD(addresses, METH_NOARGS), METHOD(size, METH_NOARGS),
    METHOD(match, METH_VARARGS),    METHOD(before, METH_VARARGS),   METHOD(counts, METH_VARARGS),
    METHOD(excluded, METH_VARARGS), METHOD(total, METH_VARARGS),    {0},
};
static PyMethodDef executions_methods[] = {
    METHOD(add_steps, METH_VARARGS),
    METHOD(add_entries, METH_VARARGS),
    METHOD(spread, METH_VARARGS),
    METHOD(result, METH_NOARGS),
    {0},
};
static PyType_Slot parts_slots[] = {
    {Py_tp_new, (void *)parts_new},
    {Py_tp_dealloc, (void *)parts_dealloc},
    {Py_tp_methods, parts_methods},
    {0},
};
static PyType_Slot executions_slots[] = {
    {Py_tp_new, (void *)executions_new},
    {Py_tp_dealloc, (void *)executions_dealloc},
    {Py_tp_methods, executions_methods},
    {0},
};
static PyType_Spec parts_spec = {"_kernel.Parts", sizeof(PartsObject), 0, Py_TPFLAGS_DEFAULT, parts_slots};
static PyType_Spec executions_spec = {"_kernel.Executions", sizeof(ExecutionsObject), 0, Py_TPFLAGS_DEFAULT,
                                      executions_slots};

int counts_register(PyObject *module)
{
    PyObject *parts = PyType_FromSpec(&parts_spec), *executions = PyType_FromSpec(&executions_spec);
    int failed = !parts || !executions || PyModule_AddObjectRef(module, "Parts", parts) ||
                 PyModule_AddObjectRef(module, "Executions", executions);
    Py_XDECREF(parts);
    Py_XDECREF(executions);
    return failed ? -1 : 0;
}
