#ifndef RVTRACE_ROWS_MODULE_H
#define RVTRACE_ROWS_MODULE_H

/* Add what rows_module.c has to the module; -1: an error. */
int rows_register(PyObject *module);

#endif
