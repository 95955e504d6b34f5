/* The functions of the module for packets in a stream. */
#ifndef RVTRACE_PACKET_FRAMES_MODULE_H
#define RVTRACE_PACKET_FRAMES_MODULE_H

#include "kernel.h"

PyObject *kernel_cut_packets(PyObject *module, PyObject *args);
PyObject *kernel_join_packets(PyObject *module, PyObject *payloads);
PyObject *kernel_split_packets(PyObject *module, PyObject *args);
PyObject *kernel_packet_heads(PyObject *module, PyObject *args);
PyObject *kernel_first_earlier(PyObject *module, PyObject *args);

#define PACKET_FRAMES_FUNCTIONS                                                                                         \
    METHOD(cut_packets, METH_VARARGS), METHOD(join_packets, METH_O), METHOD(split_packets, METH_VARARGS), \
        METHOD(packet_heads, METH_VARARGS), METHOD(first_earlier, METH_VARARGS)

#endif
