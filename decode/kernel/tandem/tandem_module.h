/* Adds the types of tandem_module.c to the module; -1 with an exception if it cannot. */
#ifndef RVTRACE_TANDEM_MODULE_H
#define RVTRACE_TANDEM_MODULE_H

int tandem_register(PyObject *module);

#endif
