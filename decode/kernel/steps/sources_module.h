/* The function of sources_module.c, for the table of the module. */
#ifndef SOURCES_MODULE_H
#define SOURCES_MODULE_H

#include <Python.h>

PyObject *kernel_sort(PyObject *module, PyObject *args);

#define SOURCES_FUNCTIONS {"sort", kernel_sort, METH_VARARGS, NULL}

#endif
