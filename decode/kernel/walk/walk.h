/* The walk over the program for the usual case: see walk.c. */
#ifndef RVTRACE_WALK_H
#define RVTRACE_WALK_H

#include <Python.h>

#include <stdint.h>

#define RUN_BITS 8 /* outcomes whose walk is remembered */
#define MOST_PARTS 1024
#define MOST_TAKEN 64 /* return addresses that a walk pops off the stack that it began with */
#define MOST_LEFT 256 /* and those that it leaves */
#define MOST_BRANCHES 64
#define NO_ADDRESS UINT64_MAX

typedef struct Walker Walker;

enum WalkEnd {
    WALK_FAILED = -1, /* a Python exception is set */
    WALK_UNUSUAL,     /* Python has to walk */
    WALK_DONE,
};

/* A walk from `pc` on over `bits` outcomes in `outcomes`, and over `limit` halfwords if that is not negative; on a call
 * stack with `depth` addresses. */
typedef struct {
    uint64_t pc, outcomes;
    unsigned bits;
    int with_runs;
    int64_t limit;
    const uint64_t *stack; /* the last address is on top */
    size_t depth;
    /* What comes of it: the next pc, unless `last` is the segment at whose undecided end it stopped. */
    PyObject *last;
    int64_t halfwords;
    uint64_t count; /* instructions */
    PyObject *parts[MOST_PARTS];
    size_t part_count;
    size_t peak; /* how deep the stack was */
    uint64_t taken[MOST_TAKEN], left[MOST_LEFT]; /* as in WalkCalls */
    size_t taken_count, left_count;
    const Walker *walker;
    uint64_t branches[MOST_BRANCHES]; /* the addresses of all branches, if they are wanted */
    uint64_t outcomes_met; /* of them, the first one in bit 0: 1 is taken */
    size_t branch_count;
    uint64_t last_branch; /* its address, if the walk ended with it alone; else NO_ADDRESS */
} Walk;

void walk_init(Walk *walk, uint64_t pc, uint64_t outcomes, unsigned bits, int64_t limit);
enum WalkEnd walk_go(Walker *walker, Walk *walk);
PyObject *walk_path(const Walk *walk);
void walk_clear(Walk *walk);
PyObject *stack_tuples(const uint64_t *lower, size_t lower_count, const uint64_t *upper, size_t upper_count);
PyObject *addresses_tuple(const uint64_t *addresses, size_t count);
int walker_register(PyObject *module); /* -1: an exception is set */
int is_walker(PyObject *object);

#endif
