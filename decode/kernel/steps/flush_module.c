/* flush of a Kernel: what ran, and the times, as they are stored in a history. */
#include "kernel.h"

#include <stdlib.h>

#define INDEX_STRIDE 16 /* of the history */
#define REPEATED 8 /* so many equal entries in a row become one */

/* Positions in the history, and times, as they become arrays. */
typedef struct {
    uint64_t *index, *positions, *times;
    size_t index_count, time_count;
} Columns;

static void add_times(Columns *columns, const Loop *loop, size_t *mark, size_t before, size_t first, uint64_t position,
                      uint64_t count)
{
    for (; *mark < loop->mark_amount.count && loop->marks[*mark].path < before; ++*mark) {
        uint64_t here = position + (loop->marks[*mark].path - first) * count;
        if (columns->time_count && columns->positions[columns->time_count - 1] == here)
            columns->time_count--; /* of several at one position, the last one stays */
        columns->positions[columns->time_count] = here;
        columns->times[columns->time_count++] = loop->marks[*mark].time;
    }
}

/* Append everything pending to the list `entries`, whose instructions end at *length. `repeated` makes one entry of
 * equal ones. */
static int flush_to(const Kernel *kernel, PyObject *entries, uint64_t *length, PyObject *repeated, Columns *columns)
{
    const Loop *loop = &kernel->loop;
    size_t pending = loop->pending_amount.count, mark = 0, entry_count = (size_t)PyList_Size(entries);
    for (size_t first = 0, next; first < pending; first = next) {
        const KnownPath *path = path_of(kernel, loop->pending[first]);
        for (next = first + 1; next < pending; next++)
            if (path_of(kernel, loop->pending[next])->object != path->object)
                break;
        add_times(columns, loop, &mark, next, first, *length, path->count);
        PyObject *entry = path->object, *made = NULL;
        size_t count = next - first, times = 1;
        if (count >= REPEATED) {
            made = entry = PyObject_CallFunction(repeated, "On", entry, (Py_ssize_t)count);
            if (!made)
                return -1;
            times = count;
            count = 1;
        }
        int failed = 0;
        for (size_t i = 0; i < count && !failed; i++) {
            if (entry_count++ % INDEX_STRIDE == 0)
                columns->index[columns->index_count++] = *length;
            failed = PyList_Append(entries, entry);
            *length += times * path->count;
        }
        Py_XDECREF(made);
        if (failed)
            return -1;
    }
    add_times(columns, loop, &mark, SIZE_MAX, pending, *length, 0);
    return 0;
}

/* flush(entries, length, repeated) -> (length, index, positions, times), the last three as bytes of 64-bit numbers */
PyObject *kernel_flush(Kernel *kernel, PyObject *args)
{
    PyObject *entries, *repeated, *result = NULL;
    unsigned long long length_before;
    if (is_busy(kernel) || !PyArg_ParseTuple(args, "O!KO", &PyList_Type, &entries, &length_before, &repeated))
        return NULL;
    Loop *loop = &kernel->loop;
    uint64_t length = length_before;
    size_t number = sizeof(uint64_t), marks = loop->mark_amount.count;
    Columns columns = {
        malloc((loop->pending_amount.count / INDEX_STRIDE + 2) * number),
        malloc((marks + 1) * number),
        malloc((marks + 1) * number),
        0,
        0,
    };
    if (!columns.index || !columns.positions || !columns.times) {
        PyErr_NoMemory();
        goto done;
    }
    kernel->busy = 1;
    int failed = flush_to(kernel, entries, &length, repeated, &columns);
    kernel->busy = 0;
    if (failed)
        goto done;
    loop->pending_amount.count = loop->mark_amount.count = 0;
    release_paths(kernel->guests, &kernel->guest_amount);
    result = Py_BuildValue("Ky#y#y#", (unsigned long long)length, (char *)columns.index,
                           (Py_ssize_t)(columns.index_count * number), (char *)columns.positions,
                           (Py_ssize_t)(columns.time_count * number), (char *)columns.times,
                           (Py_ssize_t)(columns.time_count * number));
done:
    free(columns.index);
    free(columns.positions);
    free(columns.times);
    return result;
}
