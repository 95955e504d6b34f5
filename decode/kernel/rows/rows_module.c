/* The Python type RowWriter of the module _kernel: rows.c, with the entries of histories that it knows. */
#include <Python.h>

#include <stdlib.h>

#include "rows.h"
#include "rows_module.h"

#define AT_ONCE (1 << 16) /* rows of one call, which is over soon */
#define FRAME_AT_MOST 256 /* bytes before, and after, a number */

typedef struct {
    PyObject_HEAD
    Rows rows;
    PyObject *entries; /* a list that keeps those of rows alive */
} RowWriter;

/* add(text) -> its number */
static PyObject *writer_add(RowWriter *writer, PyObject *text)
{
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(text, &bytes, &length))
        return NULL;
    if (rows_add_text(&writer->rows, (const uint8_t *)bytes, (size_t)length))
        return PyErr_NoMemory();
    return PyLong_FromSize_t(writer->rows.text_amount.count - 1);
}

static PyObject *add_entry(RowWriter *writer, PyObject *object, EntryRows entry)
{
    if (rows_entry(&writer->rows, object) != NO_ENTRY) {
        PyErr_SetString(PyExc_ValueError, "this entry is known");
        return NULL;
    }
    if (PyList_Append(writer->entries, object))
        return NULL;
    if (rows_add_entry(&writer->rows, entry))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* learn(entry, numbers): the texts of an entry, as bytes of 32-bit numbers */
static PyObject *writer_learn(RowWriter *writer, PyObject *args)
{
    PyObject *object;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "Oy*", &object, &data))
        return NULL;
    Rows *rows = &writer->rows;
    size_t count = (size_t)data.len / sizeof(uint32_t), before = rows->number_amount.count;
    int failed = rows_add_numbers(rows, data.buf, count);
    PyBuffer_Release(&data);
    if (failed)
        return PyErr_NoMemory();
    int odd = !count;
    for (size_t i = 0; i < count; i++)
        odd |= rows->numbers[before + i] >= rows->text_amount.count;
    if (odd) {
        rows->number_amount.count = before;
        PyErr_SetString(PyExc_ValueError, "no texts, or one that does not exist");
        return NULL;
    }
    return add_entry(writer, object, (EntryRows){object, before, count, count});
}

/* repeat(entry, unit, times) -> whether `unit` is known, whose texts the entry has so many times */
static PyObject *writer_repeat(RowWriter *writer, PyObject *args)
{
    PyObject *object, *unit;
    unsigned long long times;
    if (!PyArg_ParseTuple(args, "OOK", &object, &unit, &times))
        return NULL;
    uint32_t found = rows_entry(&writer->rows, unit);
    if (found == NO_ENTRY)
        Py_RETURN_FALSE;
    EntryRows entry = writer->rows.entries[found];
    if (!times || times > UINT64_MAX / entry.count) {
        PyErr_SetString(PyExc_ValueError, "no instructions, or more than can be counted");
        return NULL;
    }
    entry.entry = object;
    entry.count *= times;
    PyObject *none = add_entry(writer, object, entry);
    if (!none)
        return NULL;
    Py_DECREF(none);
    Py_RETURN_TRUE;
}

static PyObject *writer_forget(RowWriter *writer, PyObject *none)
{
    (void)none;
    rows_forget_entries(&writer->rows);
    if (PyList_SetSlice(writer->entries, 0, PyList_Size(writer->entries), NULL))
        return NULL;
    Py_RETURN_NONE;
}

/* The number of instructions from entry `at` on, instruction `first` of it, whose rows were made; -1: an error. */
static long long put_entries(Rows *rows, PyObject *entries, Py_ssize_t *at, unsigned long long *first,
                             unsigned long long count, unsigned long long number, const RowFrame *frame)
{
    unsigned long long made = 0;
    while (made < count) {
        PyObject *object = PyList_GetItem(entries, *at);
        if (!object)
            return -1;
        uint32_t found = rows_entry(rows, object);
        if (found == NO_ENTRY)
            break;
        const EntryRows *entry = &rows->entries[found];
        if (*first >= entry->count) {
            PyErr_SetString(PyExc_IndexError, "an entry has fewer instructions");
            return -1;
        }
        unsigned long long rest = entry->count - *first, some = rest < count - made ? rest : count - made;
        if (rows_put(rows, entry, *first, some, number + made, frame)) {
            PyErr_NoMemory();
            return -1;
        }
        made += some;
        *first += some;
        if (some == rest) {
            ++*at;
            *first = 0;
        }
    }
    return (long long)made;
}

/* write(entries, at, first, count, number, before, after) -> (bytes, made, at, first) */
static PyObject *writer_write(RowWriter *writer, PyObject *args)
{
    PyObject *entries;
    Py_ssize_t at, before_length, after_length;
    unsigned long long first, count, number;
    const char *before, *after;
    if (!PyArg_ParseTuple(args, "O!nKKKy#y#", &PyList_Type, &entries, &at, &first, &count, &number, &before,
                          &before_length, &after, &after_length))
        return NULL;
    if (count > AT_ONCE || before_length > FRAME_AT_MOST || after_length > FRAME_AT_MOST) {
        PyErr_SetString(PyExc_ValueError, "too many rows at once, or too much beside their numbers");
        return NULL;
    }
    uint8_t texts[2][FRAME_AT_MOST + ROW_SLACK] = {{0}};
    memcpy(texts[0], before, (size_t)before_length);
    memcpy(texts[1], after, (size_t)after_length);
    RowFrame frame = {texts[0], texts[1], (size_t)before_length, (size_t)after_length};
    Rows *rows = &writer->rows;
    rows->out_amount.count = 0;
    long long made = put_entries(rows, entries, &at, &first, count, number, &frame);
    if (made < 0)
        return NULL;
    return Py_BuildValue("y#LnK", rows->out_amount.count ? (char *)rows->out : "", (Py_ssize_t)rows->out_amount.count,
                         made, at, first);
}

/* sizes() -> (texts, entries, numbers of texts in entries) */
static PyObject *writer_sizes(RowWriter *writer, PyObject *none)
{
    (void)none;
    const Rows *rows = &writer->rows;
    return Py_BuildValue("nnn", (Py_ssize_t)rows->text_amount.count, (Py_ssize_t)rows->entry_amount.count,
                         (Py_ssize_t)rows->number_amount.count);
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    if (!PyArg_ParseTuple(args, ""))
        return NULL;
    RowWriter *writer = (RowWriter *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (writer && !(writer->entries = PyList_New(0))) {
        Py_DECREF(writer);
        return NULL;
    }
    return (PyObject *)writer;
}

static void writer_dealloc(RowWriter *writer)
{
    rows_free(&writer->rows);
    Py_XDECREF(writer->entries);
    PyTypeObject *type = Py_TYPE((PyObject *)writer);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(writer);
    Py_DECREF(type);
}

#define METHOD(name, arguments) {#name, (PyCFunction)(void (*)(void))writer_##name, arguments, NULL}

static PyMethodDef writer_methods[] = {
    METHOD(add, METH_O),           METHOD(learn, METH_VARARGS), METHOD(repeat, METH_VARARGS),
    METHOD(forget, METH_NOARGS),   METHOD(write, METH_VARARGS), METHOD(sizes, METH_NOARGS),
    {0},
};

static PyType_Slot writer_slots[] = {
    {Py_tp_new, (void *)writer_new},
    {Py_tp_dealloc, (void *)writer_dealloc},
    {Py_tp_methods, writer_methods},
    {0},
};

static PyType_Spec writer_spec = {"_kernel.RowWriter", sizeof(RowWriter), 0, Py_TPFLAGS_DEFAULT, writer_slots};

int rows_register(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&writer_spec);
    int failed = !type || PyModule_AddObjectRef(module, "RowWriter", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}
