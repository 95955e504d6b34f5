/* Puts `Parts` and `Executions` into the module; -1 after an error. */
#ifndef RVTRACE_COUNTS_MODULE_H
#define RVTRACE_COUNTS_MODULE_H

int counts_register(PyObject *module);

#endif
