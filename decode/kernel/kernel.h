/* The object behind Python's Kernel: the loop of loop.h, with the paths that its steps append. */
#ifndef RVTRACE_KERNEL_H
#define RVTRACE_KERNEL_H

#include "outcomes.h"
#include "packets.h"

#define FIRST_GUEST (-2)

typedef struct {
    PyObject *object;
    uint64_t count; /* instructions */
} KnownPath;

typedef struct {
    PyObject_HEAD
    Loop loop;
    Outcomes outcomes;
    PacketSteps packets; /* what the steps of packets have besides */
    int busy; /* it runs without the lock of the interpreter, or calls what may let go of that */
    KnownPath *paths;  /* of the steps; a number from 0 on */
    Amount path_amount;
    KnownPath *guests; /* pending and of no step; FIRST_GUEST - i is the number of the one at i */
    Amount guest_amount;
    PyObject *stack; /* as Python has it; of no use if the loop's has changed */
} Kernel;

static inline const KnownPath *path_of(const Kernel *kernel, int32_t path)
{
    return path >= 0 ? &kernel->paths[path] : &kernel->guests[FIRST_GUEST - path];
}

int is_busy(const Kernel *kernel);
int add_path(KnownPath **paths, Amount *amount, PyObject *object, uint64_t count);
void release_paths(KnownPath *paths, Amount *amount);

/* flush_module.c */
PyObject *kernel_flush(Kernel *kernel, PyObject *args);

/* outcomes_module.c: methods of a Kernel, and what it does at a frame that is new. */
enum WalkEnd kernel_make_step(Kernel *kernel, const uint8_t *data, Place *place, Walk *walk);
PyObject *kernel_outcomes(Kernel *kernel, PyObject *args);
PyObject *kernel_group(Kernel *kernel, PyObject *walker);
PyObject *kernel_state(Kernel *kernel, PyObject *args);
PyObject *kernel_state_place(Kernel *kernel, PyObject *number);
PyObject *kernel_count(Kernel *kernel, PyObject *size);
PyObject *kernel_known(Kernel *kernel, PyObject *frame);

/* packets_module.c, and what it uses. Those that return an int return -1 after they set an exception, as in Python. */
int tops_of(PyObject *taken, StackTop *tops);
int addresses_of(PyObject *tuple, uint64_t *addresses);
int path_number(Kernel *kernel, PyObject *path, int32_t *number); /* NO_PATH for None */

/* packet_outcomes.c */
enum WalkEnd kernel_make_packet_step(Kernel *kernel, const uint8_t *payload, uint32_t length, Walk *walk);

PyObject *kernel_learn_packet(Kernel *kernel, PyObject *args);
PyObject *kernel_unlearn_packet(Kernel *kernel, PyObject *args);
PyObject *kernel_run_packets(Kernel *kernel, PyObject *args);

#endif
