/* The Python type HartLoop: the loop of hart.c over the blocks of one hart. */
#ifndef HART_MODULE_H
#define HART_MODULE_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

int hart_register(PyObject *module);

#endif
