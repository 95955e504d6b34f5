/* Puts `CallWalk` into the module; -1 after an error. */
#ifndef RVTRACE_CALLS_MODULE_H
#define RVTRACE_CALLS_MODULE_H

int calls_register(PyObject *module);

#endif
