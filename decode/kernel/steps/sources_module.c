/* The function sort of _kernel: frames by their source, see sources.h. */
#include "sources_module.h"

#include "sources.h"

static PyObject *listed(const SortedFrames *sorted)
{
    PyObject *list = PyList_New((Py_ssize_t)sorted->count);
    for (size_t i = 0; list && i < sorted->count; i++) {
        const Source *source = &sorted->sources[i];
        PyObject *item = Py_BuildValue("Iy#y#", source->number, (char *)source->bytes, (Py_ssize_t)source->length,
                                       (char *)source->runs, (Py_ssize_t)(source->run_count * sizeof(SourceRun)));
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* sort(data, low, bits) -> (idle bytes, [(number, frames, runs)]), or None if there are others than frames */
PyObject *kernel_sort(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    unsigned low, bits;
    if (!PyArg_ParseTuple(args, "y*II", &data, &low, &bits))
        return NULL;
    if (low + bits > 48 || bits > 16 || data.len > UINT32_MAX) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_ValueError, "too wide a number, or too much data");
        return NULL;
    }
    SortedFrames sorted;
    enum Sorted how;
    Py_BEGIN_ALLOW_THREADS
    how = sources_sort(&sorted, data.buf, (size_t)data.len, low, bits);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    PyObject *result = NULL;
    if (how == SORTED) {
        PyObject *list = listed(&sorted);
        result = list ? Py_BuildValue("KN", (unsigned long long)sorted.idle, list) : NULL;
    } else {
        result = how == NO_MEMORY ? PyErr_NoMemory() : Py_NewRef(Py_None);
    }
    sources_free(&sorted);
    return result;
}
