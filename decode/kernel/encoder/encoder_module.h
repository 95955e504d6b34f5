#ifndef ENCODER_MODULE_H
#define ENCODER_MODULE_H

#include <Python.h>

extern PyType_Spec chain_spec;

/* Add the types Encoder and Chain to the module. 0, or -1 with an exception. */
int add_encoder_types(PyObject *module);

#endif
