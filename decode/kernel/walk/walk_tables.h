/* What a walker knows of its program: copies of the segments and runs that Python makes. */
#ifndef RVTRACE_WALK_TABLES_H
#define RVTRACE_WALK_TABLES_H

#include "walk.h"

enum { CONTINUES, BRANCH_END, JUMP, STOP, MISSING, DIRECT }; /* as in decode/stepping/control_flow.py */

typedef struct {
    uint64_t pc;
    PyObject *object, *pcs; /* NULL in an empty slot */
    uint64_t fall, target, returns_to, last_pc;
    uint32_t halfwords, count;
    uint8_t kind, has_target, calls, returns, reported;
} Segment;

typedef struct {
    uint64_t pc, top; /* top of the call stack, if the walks depend on that; 0 if it is empty */
    uint8_t state;    /* enum RunState */
    uint8_t outcomes, has_top;
    uint16_t taken, left; /* how many: `addresses` has those popped, then those left */
    uint32_t peak, halfwords;
    uint64_t count, next_pc;
    PyObject *path;
    uint64_t *addresses;
    uint64_t branches[RUN_BITS];
    uint8_t branch_count, outcomes_met;
} Run;

enum RunState { NO_ENTRY, NO_RUN, RUN };

struct Walker {
    PyObject_HEAD
    PyObject *segment_at, *run_of, *path_type, *no_code;
    PyObject *names[4]; /* attributes of a path */
    int stacked;       /* walks depend on the call stack */
    int lowest_first;  /* the lowest outcome is the first one, and 0 is taken; else the highest, and 1 */
    int falls_through; /* a branch without an outcome, before the limit, is not taken (BTM) */
    int pops_known;    /* a return whose target the code determines pops, too */
    int trains;        /* the branches are wanted */
    size_t entries;    /* of the encoder's stack; 0: any number */
    Py_ssize_t most_instructions, most_runs;
    Segment *segments;
    size_t segment_mask, segment_count;
    Py_ssize_t instructions;
    Run *runs;
    size_t run_mask, run_count;
};

/* Those that return an int return -1 if there is no memory. */
int walker_forget_segments(Walker *walker);
int walker_forget_runs(Walker *walker);
const Segment *walker_segment(Walker *walker, uint64_t pc); /* NULL: an exception, or it has not come into the table */
Run *run_slot(Run *runs, size_t mask, const Run *key);
enum WalkEnd walker_learn_run(Walker *walker, const Walk *walk, const Run *key);

#endif
