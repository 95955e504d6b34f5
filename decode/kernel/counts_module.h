/* Puts `Parts` and `Executions` into the module; -1 after an error. */
#ifndef RVTRACE_COUNTS_MODULE_H
#define RVTRACE_COUNTS_MODULE_H

int add_counts(PyObject *module);

#endif
