/* The Python type HartLoop: the loop of hart.c over the blocks of one hart. */
#ifndef HART_MODULE_H
#define HART_MODULE_H

#include <Python.h>

int hart_register(PyObject *module);

#endif
