/* The Python types TandemReader, TandemIndexer and PathBlocks: the loops of tandem.c. _kernel.pyi has the types.
 *
 * Python calls each for a piece of a trace, which takes a few milliseconds, and holds the lock of the interpreter. */
#include <Python.h>

#include "tandem.h"
#include "tandem_module.h"

typedef struct {
    PyObject_HEAD
    GroupReader reader;
} ReaderObject;

typedef struct {
    PyObject_HEAD
    GroupIndexer indexer;
} IndexerObject;

typedef struct {
    PyObject_HEAD
    BlockTable table;
} BlocksObject;

static PyObject *allocated(PyTypeObject *type) { return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0); }

static void release_object(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *refused(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static PyObject *bytes_of(const void *array, Amount *amount, size_t size)
{
    size_t count = amount->count;
    amount->count = 0;
    return PyBytes_FromStringAndSize(array, (Py_ssize_t)(count * size));
}

#define TAKEN(array, amount) bytes_of(array, &(amount), sizeof *(array))

/* Reader */

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    ReaderObject *self = (ReaderObject *)allocated(type);
    if (self && reader_init(&self->reader)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void reader_dealloc(ReaderObject *self)
{
    reader_free(&self->reader);
    release_object((PyObject *)self);
}

static PyObject *reader_learn_entry(ReaderObject *self, PyObject *args)
{
    unsigned node, byte, size, next;
    unsigned short split, shape;
    if (!PyArg_ParseTuple(args, "IIIIHH", &node, &byte, &size, &next, &split, &shape))
        return NULL;
    if (node >> 23 || next >> 23 || byte > 0xff)
        return refused("there is no such node");
    if (reader_learn(&self->reader, node, byte, size, next, split, shape))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *reader_read(ReaderObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t at, start;
    ReadPlace place = {0};
    if (!PyArg_ParseTuple(args, "y*nnI", &data, &at, &start, &place.node))
        return NULL;
    if (at < 0 || start < 0) {
        PyBuffer_Release(&data);
        return refused("not a part of the data");
    }
    place.at = (size_t)at;
    place.start = (size_t)start;
    enum Reading how = reader_run(&self->reader, data.buf, (size_t)data.len, &place);
    PyBuffer_Release(&data);
    if (how == READ_NO_MEMORY)
        return PyErr_NoMemory();
    if (how == READ_ALL)
        return Py_BuildValue("nnIO", (Py_ssize_t)place.at, (Py_ssize_t)place.start, place.node, Py_None);
    return Py_BuildValue("nnI(II)", (Py_ssize_t)place.at, (Py_ssize_t)place.start, place.node, place.miss_node,
                         place.miss_byte);
}

static PyObject *reader_take(ReaderObject *self, PyObject *none)
{
    (void)none;
    GroupReader *reader = &self->reader;
    return Py_BuildValue("NN", TAKEN(reader->offsets, reader->offset_amount),
                         TAKEN(reader->shapes, reader->shape_amount));
}

static PyMethodDef reader_methods[] = {
    {"learn", (PyCFunction)(void (*)(void))reader_learn_entry, METH_VARARGS, NULL},
    {"read", (PyCFunction)(void (*)(void))reader_read, METH_VARARGS, NULL},
    {"take", (PyCFunction)(void (*)(void))reader_take, METH_NOARGS, NULL},
    {0},
};
static PyType_Slot reader_slots[] = {
    {Py_tp_new, (void *)reader_new},
    {Py_tp_dealloc, (void *)reader_dealloc},
    {Py_tp_methods, reader_methods},
    {0},
};
static PyType_Spec reader_spec = {"_kernel.TandemReader", sizeof(ReaderObject), 0, Py_TPFLAGS_DEFAULT, reader_slots};

/* Indexer */

static PyObject *indexer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    int xlen;
    unsigned long long mprv, lowest;
    const char *kinds;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "iKKy#", &xlen, &mprv, &lowest, &kinds, &length))
        return NULL;
    if ((xlen != 32 && xlen != 64) || length < REGISTERS)
        return refused("not an XLEN, or kinds of registers, that this kernel takes");
    IndexerObject *self = (IndexerObject *)allocated(type);
    if (!self)
        return NULL;
    self->indexer.mask = xlen == 32 ? UINT32_MAX : UINT64_MAX;
    self->indexer.mprv = mprv;
    self->indexer.lowest = lowest;
    memcpy(self->indexer.kinds, kinds, REGISTERS);
    if (indexer_init(&self->indexer)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void indexer_dealloc(IndexerObject *self)
{
    indexer_free(&self->indexer);
    release_object((PyObject *)self);
}

static int add_plan(GroupIndexer *indexer, const GroupPlan *plan)
{
    if (array_reserve(&indexer->plans, &indexer->plan_amount, 1, sizeof *plan)) {
        PyErr_NoMemory();
        return -1;
    }
    indexer->plans[indexer->plan_amount.count++] = *plan;
    return 0;
}

static int is_inside(unsigned at, unsigned bytes, unsigned size) { return bytes <= 8 && at + bytes <= size; }

static int registers_of(PyObject *tuple, GroupPlan *plan)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > PLAN_REGISTERS)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PlanRegister *at = &plan->registers[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "HHH", &at->number_at, &at->value_at, &at->value_bytes) ||
            !is_inside(at->number_at, 2, plan->size) || !is_inside(at->value_at, at->value_bytes, plan->size))
            return -1;
    }
    plan->register_count = (uint16_t)count;
    return 0;
}

/* plan(size, (pc's place, bytes), (instruction's), (address's), (data's), physical, both, registers): of the next
 * shape; a field that it does not have has 0 bytes. plan(): it has none. */
static PyObject *indexer_add_plan(IndexerObject *self, PyObject *args)
{
    GroupPlan plan = {0};
    if (PyTuple_Size(args) > 0) {
        int physical, both;
        PyObject *registers;
        if (!PyArg_ParseTuple(args, "H(Hb)(Hb)(Hb)(Hb)ppO!", &plan.size, &plan.pc_at, &plan.pc_bytes, &plan.word_at,
                              &plan.length, &plan.address_at, &plan.address_bytes, &plan.data_at, &plan.data_bytes,
                              &physical, &both, &PyTuple_Type, &registers))
            return NULL;
        if (!is_inside(plan.pc_at, plan.pc_bytes, plan.size) || !is_inside(plan.word_at, plan.length, plan.size) ||
            !is_inside(plan.address_at, plan.address_bytes, plan.size) || plan.length > 4 ||
            !is_inside(plan.data_at, plan.data_bytes, plan.size) || registers_of(registers, &plan))
            return PyErr_Occurred() ? NULL : refused("a field is not in its group, or there are too many");
        plan.plain = 1;
        plan.full_pc = plan.pc_bytes > 0;
        plan.physical = (uint8_t)physical;
        plan.both = (uint8_t)both;
    }
    if (add_plan(&self->indexer, &plan))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *indexer_learn(IndexerObject *self, PyObject *args)
{
    WordFacts facts = {0};
    int stored, is_store_odd;
    PyObject *distances;
    if (!PyArg_ParseTuple(args, "IiOp", &facts.word, &stored, &distances, &is_store_odd))
        return NULL;
    facts.stored = (int8_t)stored;
    facts.flags = (uint8_t)((is_store_odd ? PYTHON_STORE : 0) | (distances == Py_None ? ANYWHERE : 0));
    if (distances != Py_None) {
        Py_ssize_t count = PyTuple_Size(distances);
        if (count < 0 || count > 2)
            return PyErr_Occurred() ? NULL : refused("too many distances");
        facts.count = (uint8_t)count;
        for (Py_ssize_t i = 0; i < count; i++)
            facts.distances[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(distances, i));
        if (PyErr_Occurred())
            return NULL;
    }
    if (indexer_word(&self->indexer, facts))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *indexer_forget_code(IndexerObject *self, PyObject *none)
{
    (void)none;
    indexer_forget(&self->indexer);
    Py_RETURN_NONE;
}

/* run(data, offsets, shapes, group, stop, pc, mprv, in physical) -> (enum Indexing, group, pc, word) */
static PyObject *indexer_index(IndexerObject *self, PyObject *args)
{
    Py_buffer data, offsets, shapes;
    IndexPlace place = {0};
    unsigned long long pc;
    if (!PyArg_ParseTuple(args, "y*y*y*IIKpp", &data, &offsets, &shapes, &place.group, &place.stop, &pc, &place.mprv,
                          &place.in_physical))
        return NULL;
    enum Indexing how = INDEX_NO_MEMORY;
    size_t groups = (size_t)offsets.len / sizeof(uint64_t);
    int is_whole = place.stop <= groups && place.stop <= (size_t)shapes.len / sizeof(uint16_t);
    if (is_whole) {
        place.data = data.buf;
        place.length = (size_t)data.len;
        place.offsets = offsets.buf;
        place.shapes = shapes.buf;
        place.pc = pc;
        how = indexer_run(&self->indexer, &place);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&shapes);
    if (!is_whole)
        return refused("there are fewer groups");
    if (how == INDEX_NO_MEMORY)
        return PyErr_NoMemory();
    return Py_BuildValue("iIKI", (int)how, place.group, (unsigned long long)place.pc, place.word);
}

/* Append to a list, and release what was appended. */
static int add_item(PyObject *list, PyObject *item)
{
    int failed = !item || PyList_Append(list, item);
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

static PyObject *ran_code(GroupIndexer *indexer)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < indexer->ran_amount.count; i++) {
        const RanCode *ran = &indexer->ran[i];
        if (add_item(list, Py_BuildValue("KI", (unsigned long long)ran->pc, ran->word)))
            Py_CLEAR(list);
    }
    indexer->ran_amount.count = 0;
    return list;
}

static PyObject *written_registers(GroupIndexer *indexer)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < indexer->touched_count; i++) {
        WriteColumn *column = &indexer->columns[indexer->touched[i]];
        if (add_item(list, Py_BuildValue("INN", (unsigned)indexer->touched[i],
                                         TAKEN(column->groups, column->group_amount),
                                         TAKEN(column->values, column->value_amount))))
            Py_CLEAR(list);
    }
    indexer->touched_count = 0;
    return list;
}

static PyObject *stores_of(StoreColumns *stores)
{
    return Py_BuildValue("NNNN", TAKEN(stores->groups, stores->group_amount),
                         TAKEN(stores->addresses, stores->address_amount), TAKEN(stores->values, stores->value_amount),
                         TAKEN(stores->sizes, stores->size_amount));
}

/* take() -> (pcs, dirty groups, code that ran, registers, stores to the space of loads and stores, and physical ones) */
static PyObject *indexer_take(IndexerObject *self, PyObject *none)
{
    (void)none;
    GroupIndexer *indexer = &self->indexer;
    return Py_BuildValue("NNNNNN", TAKEN(indexer->pcs, indexer->pc_amount),
                         TAKEN(indexer->dirty, indexer->dirty_amount), ran_code(indexer), written_registers(indexer),
                         stores_of(&indexer->stores[0]), stores_of(&indexer->stores[1]));
}

static PyMethodDef indexer_methods[] = {
    {"plan", (PyCFunction)(void (*)(void))indexer_add_plan, METH_VARARGS, NULL},
    {"learn", (PyCFunction)(void (*)(void))indexer_learn, METH_VARARGS, NULL},
    {"forget", (PyCFunction)(void (*)(void))indexer_forget_code, METH_NOARGS, NULL},
    {"run", (PyCFunction)(void (*)(void))indexer_index, METH_VARARGS, NULL},
    {"take", (PyCFunction)(void (*)(void))indexer_take, METH_NOARGS, NULL},
    {0},
};
static PyType_Slot indexer_slots[] = {
    {Py_tp_new, (void *)indexer_new},
    {Py_tp_dealloc, (void *)indexer_dealloc},
    {Py_tp_methods, indexer_methods},
    {0},
};
static PyType_Spec indexer_spec = {"_kernel.TandemIndexer", sizeof(IndexerObject), 0, Py_TPFLAGS_DEFAULT,
                                   indexer_slots};

/* Blocks */

static PyObject *blocks_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    BlocksObject *self = (BlocksObject *)allocated(type);
    if (self && blocks_init(&self->table)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void blocks_dealloc(BlocksObject *self)
{
    blocks_free(&self->table);
    release_object((PyObject *)self);
}

/* cut(addresses, longest) -> (the number of each block, where those that are new begin and end) */
static PyObject *blocks_cut_run(BlocksObject *self, PyObject *args)
{
    Py_buffer pcs;
    Py_ssize_t longest;
    if (!PyArg_ParseTuple(args, "y*n", &pcs, &longest))
        return NULL;
    int failed = -1;
    int is_sound = longest > 0 && pcs.len <= (Py_ssize_t)UINT32_MAX;
    BlockTable *table = &self->table;
    if (is_sound)
        failed = blocks_cut(table, pcs.buf, (size_t)pcs.len / sizeof(uint64_t), (size_t)longest);
    PyBuffer_Release(&pcs);
    if (!is_sound)
        return refused("too long a run");
    if (failed)
        return PyErr_NoMemory();
    return Py_BuildValue("NN", TAKEN(table->numbers, table->number_amount), TAKEN(table->fresh, table->fresh_amount));
}

static PyMethodDef blocks_methods[] = {
    {"cut", (PyCFunction)(void (*)(void))blocks_cut_run, METH_VARARGS, NULL},
    {0},
};
static PyType_Slot blocks_slots[] = {
    {Py_tp_new, (void *)blocks_new},
    {Py_tp_dealloc, (void *)blocks_dealloc},
    {Py_tp_methods, blocks_methods},
    {0},
};
static PyType_Spec blocks_spec = {"_kernel.PathBlocks", sizeof(BlocksObject), 0, Py_TPFLAGS_DEFAULT, blocks_slots};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    int failed = !type || PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

int tandem_register(PyObject *module)
{
    return add_type(module, "TandemReader", &reader_spec) || add_type(module, "TandemIndexer", &indexer_spec) ||
                   add_type(module, "PathBlocks", &blocks_spec)
               ? -1
               : 0;
}
