/* The walk over the program for the usual case: outcomes of branches are followed from segment to segment.
 *
 * It is `Walker.walk` of decode/ntrace/walk.py and `Walker.spend` of decode/etrace/walk.py, which are the readable truth,
 * as long as nothing is unusual: a contradiction, missing code, a loop without outcomes, a return without a call. Then
 * it has no result, and Python walks. Python alone knows what instructions mean: it makes the segments and the runs,
 * and this has copies of them. A walk has the same parts either way. */
#include "walk_tables.h"

#include <string.h>

#define MARKED_AFTER 4
#define MOST_STEPS 4096 /* segments without an outcome; Python knows how many there may be */

/* The call stack during a walk */

static int push(const Walker *walker, Walk *walk, uint64_t address)
{
    size_t depth = walk->depth + walk->left_count;
    if (walk->left_count == MOST_LEFT || (walker->entries && depth >= walker->entries))
        return -1;
    walk->left[walk->left_count++] = address;
    if (depth + 1 > walk->peak)
        walk->peak = depth + 1;
    return 0;
}

static int pop(Walk *walk, uint64_t *address)
{
    if (walk->left_count) {
        *address = walk->left[--walk->left_count];
        return 0;
    }
    if (!walk->depth || walk->taken_count == MOST_TAKEN)
        return -1;
    *address = walk->stack[--walk->depth];
    walk->taken[walk->taken_count++] = *address;
    return 0;
}

/* Repeat the effect of a run. 0: it meets other return addresses here; -1: Python has to see to it. */
static int redo(const Walker *walker, Walk *walk, const Run *run)
{
    size_t depth = walk->depth + walk->left_count;
    if (walker->entries && depth + run->peak > walker->entries)
        return 0;
    size_t own = walk->left_count < run->taken ? walk->left_count : run->taken, below = run->taken - own;
    if (below > walk->depth)
        return 0;
    for (size_t i = 0; i < run->taken; i++) {
        uint64_t address = i < own ? walk->left[walk->left_count - 1 - i] : walk->stack[walk->depth - 1 - (i - own)];
        if (address != run->addresses[i])
            return 0;
    }
    if (walk->taken_count + below > MOST_TAKEN || walk->left_count - own + run->left > MOST_LEFT)
        return -1;
    if (below)
        memcpy(walk->taken + walk->taken_count, run->addresses + own, below * sizeof *walk->taken);
    walk->taken_count += below;
    walk->depth -= below;
    walk->left_count -= own;
    if (run->left)
        memcpy(walk->left + walk->left_count, run->addresses + run->taken, run->left * sizeof *walk->left);
    walk->left_count += run->left;
    if (depth + run->peak > walk->peak)
        walk->peak = depth + run->peak;
    return 1;
}

/* The walk */

void walk_init(Walk *walk, uint64_t pc, uint64_t outcomes, unsigned bits, int64_t limit)
{
    walk->pc = pc;
    walk->outcomes = outcomes;
    walk->bits = bits;
    walk->limit = limit;
    walk->with_runs = 1;
    walk->stack = NULL;
    walk->depth = walk->peak = 0;
    walk->last = NULL;
    walk->outcomes_met = 0;
    walk->branch_count = 0;
    walk->last_branch = NO_ADDRESS;
    walk->halfwords = 0;
    walk->count = 0;
    walk->part_count = walk->taken_count = walk->left_count = 0;
}

void walk_clear(Walk *walk)
{
    for (size_t i = 0; i < walk->part_count; i++)
        Py_DECREF(walk->parts[i]);
    walk->part_count = 0;
    Py_CLEAR(walk->last);
}

static int add_part(Walk *walk, PyObject *part, uint64_t count, uint32_t halfwords)
{
    if (walk->part_count == MOST_PARTS)
        return -1;
    walk->parts[walk->part_count++] = Py_NewRef(part);
    walk->count += count;
    walk->halfwords += halfwords;
    return 0;
}

static int add_branch(Walk *walk, uint64_t pc, int taken)
{
    if (walk->branch_count == MOST_BRANCHES)
        return -1;
    walk->outcomes_met |= (uint64_t)taken << walk->branch_count;
    walk->branches[walk->branch_count++] = pc;
    return 0;
}

static unsigned spent(const Walker *walker, Walk *walk, unsigned count)
{
    unsigned mask = (1u << count) - 1, bits;
    walk->bits -= count;
    if (!walker->lowest_first)
        return (unsigned)(walk->outcomes >> walk->bits) & mask;
    bits = (unsigned)walk->outcomes & mask;
    walk->outcomes >>= count;
    return bits;
}

/* Walk the next RUN_BITS outcomes at once. WALK_UNUSUAL: they have to be walked one by one. */
static enum WalkEnd walk_outcome_run(Walker *walker, Walk *walk)
{
    Run key = {.pc = walk->pc};
    key.outcomes = (uint8_t)(walker->lowest_first ? walk->outcomes : walk->outcomes >> (walk->bits - RUN_BITS));
    if (walker->stacked && walk->depth + walk->left_count) {
        key.has_top = 1;
        key.top = walk->left_count ? walk->left[walk->left_count - 1] : walk->stack[walk->depth - 1];
    }
    const Run *run = run_slot(walker->runs, walker->run_mask, &key);
    if (run->state == NO_ENTRY) {
        enum WalkEnd learned = walker_learn_run(walker, walk, &key);
        if (learned != WALK_DONE)
            return learned == WALK_UNUSUAL ? WALK_FAILED : learned;
        run = run_slot(walker->runs, walker->run_mask, &key);
    }
    if (run->state != RUN || (walk->limit >= 0 && walk->halfwords + run->halfwords > walk->limit))
        return WALK_UNUSUAL;
    int valid = run->taken + run->left + run->peak ? redo(walker, walk, run) : 1;
    if (valid <= 0)
        return valid ? WALK_FAILED : WALK_UNUSUAL;
    if (add_part(walk, run->path, run->count, run->halfwords))
        return WALK_FAILED;
    spent(walker, walk, RUN_BITS);
    walk->pc = run->next_pc;
    walk->last_branch = NO_ADDRESS;
    for (size_t i = 0; i < run->branch_count; i++)
        if (add_branch(walk, run->branches[i], run->outcomes_met >> i & 1))
            return WALK_FAILED;
    return WALK_DONE;
}

/* End a walk inside a segment. */
static enum WalkEnd end_in(const Segment *segment, Walk *walk)
{
    PyObject *ends = PyObject_GetAttrString(segment->object, "ends");
    Py_ssize_t count = 0;
    uint32_t end = 0;
    if (!ends)
        return WALK_FAILED;
    for (; count < (Py_ssize_t)segment->count; count++) {
        PyObject *number = PyTuple_GetItem(ends, count);
        uint32_t next = number ? (uint32_t)PyLong_AsUnsignedLongMask(number) : 0;
        if (PyErr_Occurred() || walk->halfwords + next > walk->limit)
            break;
        end = next;
    }
    Py_DECREF(ends);
    if (PyErr_Occurred())
        return WALK_FAILED;
    if (walk->halfwords + end != walk->limit || walk->bits)
        return WALK_UNUSUAL;
    PyObject *next = PyTuple_GetItem(segment->pcs, count);
    walk->pc = next ? PyLong_AsUnsignedLongLongMask(next) : 0;
    if (!next)
        return WALK_FAILED;
    if (!count)
        return WALK_DONE;
    PyObject *part = PyTuple_GetSlice(segment->pcs, 0, count);
    int full = part ? add_part(walk, part, (uint64_t)count, end) : 0;
    Py_XDECREF(part);
    return !part ? WALK_FAILED : full ? WALK_UNUSUAL : WALK_DONE;
}

/* Go past the end of a segment that is no branch with an outcome. *stops: the walk ends there. */
static enum WalkEnd pass(const Walker *walker, const Segment *segment, Walk *walk, int *stops)
{
    int at_limit = walk->limit >= 0 && walk->halfwords == walk->limit;
    uint64_t address;
    *stops = 0;
    switch (segment->kind) {
    case CONTINUES:
        walk->pc = segment->fall;
        return WALK_DONE;
    case DIRECT:
        if (segment->reported) {
            *stops = !walk->bits;
            if (*stops)
                return at_limit ? WALK_DONE : WALK_UNUSUAL;
            if (!spent(walker, walk, 1))
                return WALK_UNUSUAL;
        }
        if (segment->calls && push(walker, walk, segment->returns_to))
            return WALK_UNUSUAL;
        walk->pc = segment->fall;
        return WALK_DONE;
    case BRANCH_END:
        *stops = !(walker->falls_through && walk->limit >= 0 && !at_limit);
        if (*stops)
            return at_limit ? WALK_DONE : WALK_UNUSUAL;
        walk->pc = segment->fall;
        return WALK_DONE;
    case JUMP:
        *stops = at_limit;
        if (at_limit)
            return walk->bits ? WALK_UNUSUAL : WALK_DONE;
        if (segment->has_target) {
            if (walker->pops_known && segment->returns && pop(walk, &address))
                return WALK_UNUSUAL;
            address = segment->target;
        } else if (!segment->returns || pop(walk, &address)) {
            return WALK_UNUSUAL;
        }
        if (segment->calls && push(walker, walk, segment->fall))
            return WALK_UNUSUAL;
        walk->pc = address;
        return WALK_DONE;
    case STOP:
        *stops = 1;
        return at_limit && !walk->bits ? WALK_DONE : WALK_UNUSUAL;
    default:
        return WALK_UNUSUAL;
    }
}

enum WalkEnd walk_go(Walker *walker, Walk *walk)
{
    unsigned steps = 0; /* since the last outcome */
    uint64_t marked = 0;
    walk->walker = walker;
    while (walk->limit < 0 ? walk->bits > 0 : walk->halfwords < walk->limit) {
        if (walk->bits >= RUN_BITS && walk->with_runs) {
            enum WalkEnd end = walk_outcome_run(walker, walk);
            if (end == WALK_FAILED)
                return PyErr_Occurred() ? WALK_FAILED : WALK_UNUSUAL;
            if (end == WALK_DONE) {
                steps = 0;
                continue;
            }
        }
        const Segment *segment = walker_segment(walker, walk->pc);
        if (!segment)
            return PyErr_Occurred() ? WALK_FAILED : WALK_UNUSUAL;
        if (walk->limit >= 0 && walk->halfwords + segment->halfwords > walk->limit)
            return end_in(segment, walk);
        if (segment->count && add_part(walk, segment->pcs, segment->count, segment->halfwords))
            return WALK_UNUSUAL;
        if (segment->kind == BRANCH_END && walk->bits) {
            int taken = (int)spent(walker, walk, 1) ^ walker->lowest_first;
            walk->pc = taken ? segment->target : segment->fall;
            walk->last_branch = segment->last_pc;
            if (walker->trains && add_branch(walk, segment->last_pc, taken))
                return WALK_UNUSUAL;
            steps = 0;
            continue;
        }
        int stops;
        enum WalkEnd end = pass(walker, segment, walk, &stops);
        if (end != WALK_DONE)
            return end;
        if (stops) {
            walk->last = Py_NewRef(segment->object);
            return WALK_DONE;
        }
        steps = segment->reported ? 1 : steps + 1; /* 1: it had an outcome */
        /* If the pc is an earlier one, the code can only loop. */
        if (steps < MARKED_AFTER)
            continue;
        if (steps > MARKED_AFTER && walk->pc == marked)
            return WALK_UNUSUAL;
        if (!(steps & (steps - 1)))
            marked = walk->pc;
        if (steps > MOST_STEPS)
            return WALK_UNUSUAL;
    }
    return walk->bits ? WALK_UNUSUAL : WALK_DONE;
}

/* The path of a walk that has parts. */
PyObject *walk_path(const Walk *walk)
{
    const Walker *walker = walk->walker;
    PyTypeObject *type = (PyTypeObject *)walker->path_type;
    PyObject *path = ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    PyObject *parts = path ? PyTuple_New((Py_ssize_t)walk->part_count) : NULL;
    PyObject *count = parts ? PyLong_FromUnsignedLongLong(walk->count) : NULL;
    int failed = !count;
    for (size_t i = 0; parts && i < walk->part_count; i++)
        PyTuple_SetItem(parts, (Py_ssize_t)i, Py_NewRef(walk->parts[i]));
    PyObject *values[4] = {parts, count, Py_None, walker->no_code};
    for (int i = 0; i < 4 && !failed; i++)
        failed = PyObject_SetAttr(path, walker->names[i], values[i]);
    Py_XDECREF(parts);
    Py_XDECREF(count);
    if (failed)
        Py_CLEAR(path);
    return path;
}
