/* The Python type HartLoop: the loop of hart.c, with the registers that Python has.
 *
 * It keeps the interpreter's lock, calls nothing of Python, and has no object but the memory: the blocks of Python come
 * with each call, by their numbers. */
#include "hart_module.h"

#include <stdlib.h>
#include <string.h>

#include "hart.h"

typedef struct {
    PyObject_HEAD
    HartLoop loop;
    Py_buffer memory, marks; /* marks.obj: NULL if there are none */
} HartBlocks;

/* forget(tohost): all blocks. *tohost*: the offset in memory at which stores are Python's. */
static PyObject *blocks_forget(HartBlocks *self, PyObject *tohost)
{
    uint64_t offset = PyLong_AsUnsignedLongLongMask(tohost);
    if (PyErr_Occurred())
        return NULL;
    hart_forget(&self->loop);
    self->loop.tohost = offset;
    Py_RETURN_NONE;
}

static int is_operation(const CodeOperation *op)
{
    return op->operation < HART_OPERATIONS && op->rd && op->rd <= REGISTERS && op->rs1 < REGISTERS &&
           op->rs2 < REGISTERS;
}

/* add(pc, end, instructions, operations): the block of the next number */
static PyObject *blocks_add(HartBlocks *self, PyObject *args)
{
    unsigned long long pc, end;
    unsigned instructions;
    const char *packed;
    Py_ssize_t size;
    CodeOperation operations[MOST_OPERATIONS];
    if (!PyArg_ParseTuple(args, "KKIy#", &pc, &end, &instructions, &packed, &size))
        return NULL;
    size_t count = (size_t)size / sizeof *operations;
    int wrong = (size_t)size % sizeof *operations || count > MOST_OPERATIONS || !instructions;
    if (!wrong)
        memcpy(operations, packed, (size_t)size);
    for (size_t i = 0; !wrong && i < count; i++)
        wrong = !is_operation(&operations[i]);
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "not a block that this kernel takes");
        return NULL;
    }
    CodeBlock block = {.pc = pc, .end = end, .count = (uint32_t)count, .instructions = instructions};
    if (self->loop.block_count >= UINT32_MAX - 1 || hart_add(&self->loop, block, operations))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Registers. One that is no int is unknown, if there are marks. */

static int is_unknown(HartLoop *loop, PyObject *number) { return loop->marks && !PyLong_Check(number); }

static int take_registers(HartLoop *loop, PyObject *x)
{
    loop->unknown = 0;
    for (Py_ssize_t i = 1; i < REGISTERS; i++) {
        PyObject *number = PyList_GetItem(x, i);
        if (!number)
            return -1;
        if (is_unknown(loop, number)) {
            loop->unknown |= (uint64_t)1 << i;
            loop->x[i] = 0;
            continue;
        }
        uint64_t value = PyLong_AsUnsignedLongLongMask(number);
        loop->x[i] = loop->is_rv32 ? (uint64_t)(int64_t)(int32_t)(uint32_t)value : value;
    }
    loop->x[0] = 0;
    return PyErr_Occurred() ? -1 : 0;
}

/* *unknown*: as they were before. */
static int give_registers(const HartLoop *loop, const uint64_t *before, uint64_t unknown, PyObject *x)
{
    for (Py_ssize_t i = 1; i < REGISTERS; i++) {
        int is_found = unknown >> i & 1 && !(loop->unknown >> i & 1);
        if (loop->x[i] == before[i] && !is_found)
            continue;
        PyObject *number = PyLong_FromUnsignedLongLong(loop->x[i] & loop->address_mask);
        if (!number || PyList_SetItem(x, i, number))
            return -1;
    }
    return 0;
}

/* The loop */

typedef struct {
    PyObject *blocks, *retired; /* lists; retired may be None */
    uint64_t pc, ran;
    enum HartStop stop;
} HartRun;

/* -1: an exception */
static int run_blocks(HartLoop *loop, CodeBlock *block, HartRun *run, uint64_t budget)
{
    int is_told = run->retired != Py_None;
    while (block && run->ran < budget) {
        uint64_t next;
        run->stop = hart_execute(loop, block, &next);
        if (run->stop != WENT_ON)
            return 0;
        if (is_told) {
            PyObject *executed = PyList_GetItem(run->blocks, block - loop->blocks);
            if (!executed || PyList_Append(run->retired, executed))
                return -1;
        }
        run->ran += block->instructions;
        run->pc = next;
        block = hart_block_at(loop, next);
    }
    return 0;
}

/* run(x, pc, budget, blocks, retired) -> (enum HartStop, pc, instructions) */
static PyObject *blocks_run(HartBlocks *self, PyObject *args)
{
    PyObject *x;
    unsigned long long pc, budget;
    HartRun run = {.stop = LEFT};
    if (!PyArg_ParseTuple(args, "O!KKO!O", &PyList_Type, &x, &pc, &budget, &PyList_Type, &run.blocks, &run.retired))
        return NULL;
    if (run.retired != Py_None && !PyList_Check(run.retired)) {
        PyErr_SetString(PyExc_TypeError, "retired is a list or None");
        return NULL;
    }
    HartLoop *loop = &self->loop;
    uint64_t before[REGISTERS + 1];
    CodeBlock *block = hart_block_at(loop, pc);
    run.pc = pc;
    if (block) {
        if (take_registers(loop, x))
            return NULL;
        memcpy(before, loop->x, sizeof before);
        uint64_t unknown = loop->unknown;
        if (run_blocks(loop, block, &run, budget) || give_registers(loop, before, unknown, x))
            return NULL;
    }
    return Py_BuildValue("iKK", run.stop, (unsigned long long)run.pc, (unsigned long long)run.ran);
}

/* The type */

static int set_up(HartBlocks *self, int xlen, unsigned long long base, unsigned long long size, unsigned odd)
{
    HartLoop *loop = &self->loop;
    if ((xlen != 32 && xlen != 64) || !size || size & (size - 1) || size > (unsigned long long)self->memory.len ||
        (self->marks.obj && size > (unsigned long long)self->marks.len)) {
        PyErr_SetString(PyExc_ValueError, "not a width, or a memory, that this kernel takes");
        return -1;
    }
    loop->is_rv32 = xlen == 32;
    loop->address_mask = loop->is_rv32 ? UINT32_MAX : UINT64_MAX;
    loop->memory = self->memory.buf;
    loop->marks = self->marks.obj ? self->marks.buf : NULL;
    loop->base = base;
    loop->size = size;
    loop->odd = odd;
    loop->tohost = UINT64_MAX;
    if (!hart_init(loop))
        return 0;
    PyErr_NoMemory();
    return -1;
}

static void release(Py_buffer *memory, Py_buffer *marks)
{
    PyBuffer_Release(memory);
    if (marks->obj)
        PyBuffer_Release(marks);
}

/* HartLoop(xlen, memory, base, size, odd[, marks]) */
static PyObject *blocks_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    int xlen;
    unsigned odd;
    unsigned long long base, size;
    Py_buffer memory, marks = {.obj = NULL};
    if (!PyArg_ParseTuple(args, "iw*KKI|w*", &xlen, &memory, &base, &size, &odd, &marks))
        return NULL;
    HartBlocks *self = (HartBlocks *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) {
        release(&memory, &marks);
        return NULL;
    }
    self->memory = memory;
    self->marks = marks;
    if (set_up(self, xlen, base, size, odd)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void blocks_dealloc(HartBlocks *self)
{
    hart_free(&self->loop);
    release(&self->memory, &self->marks);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define METHOD(name, arguments) {#name, (PyCFunction)(void (*)(void))blocks_##name, arguments, NULL}

static PyMethodDef blocks_methods[] = {
    METHOD(forget, METH_O),
    METHOD(add, METH_VARARGS),
    METHOD(run, METH_VARARGS),
    {0},
};
static PyType_Slot blocks_slots[] = {
    {Py_tp_new, (void *)blocks_new},
    {Py_tp_dealloc, (void *)blocks_dealloc},
    {Py_tp_methods, blocks_methods},
    {0},
};
static PyType_Spec blocks_spec = {"_kernel.HartLoop", sizeof(HartBlocks), 0, Py_TPFLAGS_DEFAULT, blocks_slots};

#define OPERATION_NAME(number, name) name,

static PyObject *operation_names(void)
{
    static const char *const names[] = {OPERATIONS(OPERATION_NAME)};
    PyObject *tuple = PyTuple_New(HART_OPERATIONS);
    for (Py_ssize_t i = 0; tuple && i < HART_OPERATIONS; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyTuple_SetItem(tuple, i, name)) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

int hart_register(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&blocks_spec), *names = operation_names();
    int failed = !type || !names || PyModule_AddObjectRef(module, "HartLoop", type) ||
                 PyModule_AddObjectRef(module, "HART_OPERATIONS", names);
    Py_XDECREF(type);
    Py_XDECREF(names);
    return failed ? -1 : 0;
}
