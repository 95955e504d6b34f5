/* The segments and runs that a walker has, by their keys; what is missing is asked of Python. */
#include "walk_tables.h"

#include <stdlib.h>

#define FIRST_SLOTS 256

static size_t mixed(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15ull;
    return (size_t)(x ^ x >> 32);
}

static Segment *segment_slot(Segment *segments, size_t mask, uint64_t pc)
{
    size_t i = mixed(pc);
    while (segments[i & mask].object && segments[i & mask].pc != pc)
        i++;
    return &segments[i & mask];
}

Run *run_slot(Run *runs, size_t mask, const Run *key)
{
    size_t i = mixed(key->pc ^ (uint64_t)key->outcomes << 48 ^ key->top * 31);
    for (;; i++) {
        Run *run = &runs[i & mask];
        if (run->state == NO_ENTRY || (run->pc == key->pc && run->outcomes == key->outcomes &&
                                       run->has_top == key->has_top && run->top == key->top))
            return run;
    }
}

/* Release what a table has only after it is empty: that may run code of Python's. */
int walker_forget_segments(Walker *walker)
{
    Segment *old = walker->segments, *fresh = calloc(FIRST_SLOTS, sizeof *fresh);
    size_t mask = walker->segment_mask;
    if (!fresh)
        return -1;
    walker->segments = fresh;
    walker->segment_mask = FIRST_SLOTS - 1;
    walker->segment_count = 0;
    walker->instructions = 0;
    for (size_t i = 0; old && i <= mask; i++) {
        Py_XDECREF(old[i].object);
        Py_XDECREF(old[i].pcs);
    }
    free(old);
    return 0;
}

int walker_forget_runs(Walker *walker)
{
    Run *old = walker->runs, *fresh = calloc(FIRST_SLOTS, sizeof *fresh);
    size_t mask = walker->run_mask;
    if (!fresh)
        return -1;
    walker->runs = fresh;
    walker->run_mask = FIRST_SLOTS - 1;
    walker->run_count = 0;
    for (size_t i = 0; old && i <= mask; i++) {
        Py_XDECREF(old[i].path);
        free(old[i].addresses);
    }
    free(old);
    return 0;
}

static int more_segments(Walker *walker)
{
    if (2 * (walker->segment_count + 1) <= walker->segment_mask)
        return 0;
    size_t mask = 2 * walker->segment_mask + 1;
    Segment *grown = calloc(mask + 1, sizeof *grown);
    if (!grown)
        return -1;
    for (size_t i = 0; i <= walker->segment_mask; i++)
        if (walker->segments[i].object)
            *segment_slot(grown, mask, walker->segments[i].pc) = walker->segments[i];
    free(walker->segments);
    walker->segments = grown;
    walker->segment_mask = mask;
    return 0;
}

static int more_runs(Walker *walker)
{
    if (2 * (walker->run_count + 1) <= walker->run_mask)
        return 0;
    size_t mask = 2 * walker->run_mask + 1;
    Run *grown = calloc(mask + 1, sizeof *grown);
    if (!grown)
        return -1;
    for (size_t i = 0; i <= walker->run_mask; i++)
        if (walker->runs[i].state != NO_ENTRY)
            *run_slot(grown, mask, &walker->runs[i]) = walker->runs[i];
    free(walker->runs);
    walker->runs = grown;
    walker->run_mask = mask;
    return 0;
}

/* What Python has */

static uint64_t number_of(PyObject *object, const char *name)
{
    PyObject *number = PyErr_Occurred() ? NULL : PyObject_GetAttrString(object, name);
    uint64_t value = number ? PyLong_AsUnsignedLongLongMask(number) : 0;
    Py_XDECREF(number);
    return value;
}

/* Copy a segment of Python's into the table. */
static int learn_segment(Walker *walker, uint64_t pc)
{
    PyObject *object = PyObject_CallFunction(walker->segment_at, "K", (unsigned long long)pc);
    if (!object)
        return -1;
    Segment segment = {.pc = pc, .object = object, .pcs = PyObject_GetAttrString(object, "pcs")};
    if (!segment.pcs)
        goto failed;
    segment.count = (uint32_t)PyTuple_Size(segment.pcs);
    segment.fall = number_of(object, "fall");
    segment.target = number_of(object, "taken");
    segment.has_target = segment.target != UINT64_MAX; /* NOWHERE */
    segment.returns_to = number_of(object, "returns_to");
    segment.halfwords = (uint32_t)number_of(object, "halfwords");
    segment.kind = (uint8_t)number_of(object, "kind");
    segment.calls = number_of(object, "calls") != 0;
    segment.returns = number_of(object, "returns") != 0;
    segment.reported = number_of(object, "reported") != 0;
    if (!PyErr_Occurred() && segment.count)
        segment.last_pc = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(segment.pcs, (Py_ssize_t)segment.count - 1));
    if (PyErr_Occurred())
        goto failed;
    if (walker->instructions > walker->most_instructions && walker_forget_segments(walker)) {
        PyErr_NoMemory();
        goto failed;
    }
    if (more_segments(walker)) {
        PyErr_NoMemory();
        goto failed;
    }
    Segment *slot = segment_slot(walker->segments, walker->segment_mask, pc);
    PyObject *before = slot->object, *pcs_before = slot->pcs;
    *slot = segment;
    if (!before)
        walker->segment_count++;
    walker->instructions += segment.count;
    Py_XDECREF(before);
    Py_XDECREF(pcs_before);
    return 0;
failed:
    Py_XDECREF(segment.pcs);
    Py_DECREF(object);
    return -1;
}

const Segment *walker_segment(Walker *walker, uint64_t pc)
{
    const Segment *segment = segment_slot(walker->segments, walker->segment_mask, pc);
    if (segment->object)
        return segment;
    if (learn_segment(walker, pc))
        return NULL;
    segment = segment_slot(walker->segments, walker->segment_mask, pc);
    return segment->object ? segment : NULL;
}

static int addresses_from(PyObject *tuple, uint64_t *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *address = PyTuple_GetItem(tuple, (Py_ssize_t)i);
        addresses[i] = address ? PyLong_AsUnsignedLongLong(address) : 0;
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int copy_branches(PyObject *branches, Run *run)
{
    Py_ssize_t count = PyTuple_Size(branches);
    if (count > RUN_BITS) {
        PyErr_SetString(PyExc_ValueError, "more branches than a run has");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long pc;
        int taken;
        if (!PyArg_ParseTuple(PyTuple_GetItem(branches, i), "Kp", &pc, &taken))
            return -1;
        run->branches[i] = pc;
        run->outcomes_met |= (uint8_t)(taken << i);
    }
    if (count > 0)
        run->branch_count = (uint8_t)count;
    return count < 0 ? -1 : 0;
}

/* Fill `run` with what Python's has: (path, next pc, halfwords, taken, left, peak, branches). 1: it is too large. */
static int copy_run(const Walker *walker, PyObject *object, Run *run)
{
    PyObject *path, *taken, *left, *branches;
    unsigned long long next_pc;
    unsigned halfwords, peak;
    if (!PyArg_ParseTuple(object, "OKIO!O!IO", &path, &next_pc, &halfwords, &PyTuple_Type, &taken, &PyTuple_Type,
                          &left, &peak, &branches))
        return -1;
    Py_ssize_t taken_count = PyTuple_Size(taken), left_count = PyTuple_Size(left);
    if (taken_count > MOST_TAKEN || left_count > MOST_LEFT)
        return 1;
    run->addresses = malloc((size_t)(taken_count + left_count + 1) * sizeof *run->addresses);
    if (!run->addresses) {
        PyErr_NoMemory();
        return -1;
    }
    run->taken = (uint16_t)taken_count;
    run->left = (uint16_t)left_count;
    if (addresses_from(taken, run->addresses, run->taken) ||
        addresses_from(left, run->addresses + run->taken, run->left))
        return -1;
    run->path = Py_NewRef(path);
    if (walker->trains && copy_branches(branches, run))
        return -1;
    run->count = number_of(path, "count");
    run->next_pc = next_pc;
    run->halfwords = halfwords;
    run->peak = peak;
    return PyErr_Occurred() ? -1 : 0;
}

/* (address, stack below, depth), None if it is empty: first the lower addresses, then the upper ones. */
PyObject *stack_tuples(const uint64_t *lower, size_t lower_count, const uint64_t *upper, size_t upper_count)
{
    PyObject *stack = Py_NewRef(Py_None);
    for (size_t i = 0; stack && i < lower_count + upper_count; i++) {
        uint64_t address = i < lower_count ? lower[i] : upper[i - lower_count];
        stack = Py_BuildValue("KNn", (unsigned long long)address, stack, (Py_ssize_t)i + 1);
    }
    return stack;
}

/* Ask Python for the run that `key` names, and put it into the table. */
enum WalkEnd walker_learn_run(Walker *walker, const Walk *walk, const Run *key)
{
    PyObject *stack = stack_tuples(walk->stack, walk->depth, walk->left, walk->left_count);
    if (!stack)
        return WALK_FAILED;
    PyObject *object =
        PyObject_CallFunction(walker->run_of, "KBN", (unsigned long long)key->pc, key->outcomes, stack);
    if (!object)
        return WALK_FAILED;
    Run run = *key;
    run.state = object == Py_None ? NO_RUN : RUN;
    int failed = object != Py_None ? copy_run(walker, object, &run) : 0;
    Py_DECREF(object);
    int is_full = walker->run_count >= (size_t)walker->most_runs;
    if (!failed && ((is_full && walker_forget_runs(walker)) || more_runs(walker))) {
        PyErr_NoMemory();
        failed = -1;
    }
    Run *slot = failed ? NULL : run_slot(walker->runs, walker->run_mask, key);
    if (slot && slot->state == NO_ENTRY) {
        walker->run_count++;
        *slot = run;
        return WALK_DONE;
    }
    Py_XDECREF(run.path); /* another thread was quicker, or it failed */
    free(run.addresses);
    return failed < 0 ? WALK_FAILED : failed ? WALK_UNUSUAL : WALK_DONE;
}
