/* The functions of the module for packets in a stream; see packet_frames.h. _kernel.pyi has the types. */
#include "packet_frames_module.h"

#include <stdlib.h>

#include "packet_frames.h"

#define LONGEST 255 /* bytes of a payload whose length is in a byte */

/* Python packs 256 kinds, and then so many numbers of 8 bits. */
#define FORMAT_BYTES (256 * sizeof(PacketKind) + 7)

static int format_of(const uint8_t *packed, size_t length, PacketFormat *format)
{
    if (length == FORMAT_BYTES) {
        const uint8_t *numbers = packed + sizeof format->kinds;
        memcpy(format->kinds, packed, sizeof format->kinds);
        format->source_bits = numbers[0];
        format->time_bytes = numbers[1];
        format->type_bits = numbers[2];
        format->instruction = numbers[3];
        format->data = numbers[4];
        format->packed = numbers[5];
        format->plain = numbers[6];
        int fits = format->source_bits <= 16 && format->time_bytes <= 8 && format->type_bits <= 8;
        for (int i = 0; i < 256 && fits; i++) {
            const PacketKind *kind = &format->kinds[i];
            size_t least = kind->begin + (kind->timed ? format->source_bits / 8 + format->time_bytes : 0u);
            fits = kind->size <= 64 && kind->end <= kind->size && kind->content <= IDLE_BYTES && kind->begin <= kind->end;
            fits = fits && (kind->content == IDLE_BYTES || !kind->size || least < kind->end);
        }
        if (fits)
            return 0;
    }
    PyErr_SetString(PyExc_ValueError, "not a format of packets that this kernel reads");
    return -1;
}

static PyObject *bytes_of(const void *array, size_t count, size_t size)
{
    return PyBytes_FromStringAndSize(array, (Py_ssize_t)(count * size));
}

/* (source, content, number of packets, payloads, offsets, sizes, times, present, bytes) */
static PyObject *group_tuple(const PacketGroup *group)
{
    PyObject *times = group->times ? bytes_of(group->times, group->count, sizeof *group->times) : Py_NewRef(Py_None);
    PyObject *present = group->times ? bytes_of(group->present, group->count, 1) : Py_NewRef(Py_None);
    return Py_BuildValue("IinNNNNNn", group->source, (int)group->content, (Py_ssize_t)group->count,
                         bytes_of(group->payloads, group->length, 1),
                         bytes_of(group->offsets, group->count, sizeof *group->offsets),
                         bytes_of(group->sizes, group->count, 1), times, present, (Py_ssize_t)group->bytes);
}

/* The groups of each source together, the sources in the order in which they come first. */
static PyObject *group_list(const CutPackets *cut)
{
    PyObject *list = PyList_New(0);
    uint8_t *listed = calloc(cut->count + 1, 1);
    if (!listed)
        PyErr_NoMemory();
    for (size_t first = 0; list && listed && first < cut->count; first++) {
        for (size_t i = first + 1; i && !listed[i - 1]; i = cut->groups[i - 1].next) {
            PyObject *tuple = group_tuple(&cut->groups[i - 1]);
            listed[i - 1] = 1;
            if (!tuple || PyList_Append(list, tuple)) {
                Py_XDECREF(tuple);
                Py_CLEAR(list);
                break;
            }
            Py_DECREF(tuple);
        }
    }
    if (!listed)
        Py_CLEAR(list);
    free(listed);
    return list;
}

/* cut_packets(format, data, at) -> (end, idle bytes, packets, groups or None if the packets are as in packets.h) */
PyObject *kernel_cut_packets(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer packed, data;
    Py_ssize_t at;
    PacketFormat format;
    CutPackets cut = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*n", &packed, &data, &at))
        return NULL;
    if (at < 0 || at > data.len || data.len > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "not a part of the data, or too much data");
    } else if (!format_of(packed.buf, (size_t)packed.len, &format)) {
        int failed;
        Py_BEGIN_ALLOW_THREADS
        failed = packets_cut(&cut, &format, data.buf, (size_t)at, (size_t)data.len);
        Py_END_ALLOW_THREADS
        PyObject *groups = failed ? PyErr_NoMemory() : cut.plain ? Py_NewRef(Py_None) : group_list(&cut);
        if (groups)
            result = Py_BuildValue("nnnN", (Py_ssize_t)cut.end, (Py_ssize_t)cut.idle, (Py_ssize_t)cut.packets, groups);
        packets_release(&cut);
    }
    PyBuffer_Release(&packed);
    PyBuffer_Release(&data);
    return result;
}

/* join_packets(payloads) -> a byte with the length and the bytes of each */
PyObject *kernel_join_packets(PyObject *module, PyObject *payloads)
{
    (void)module;
    if (!PyList_Check(payloads)) {
        PyErr_SetString(PyExc_TypeError, "not a list of payloads");
        return NULL;
    }
    size_t count = (size_t)PyList_Size(payloads), length = 0;
    for (size_t i = 0; i < count; i++) {
        Py_ssize_t size = PyBytes_Size(PyList_GetItem(payloads, (Py_ssize_t)i));
        if (size < 0)
            return NULL;
        if (size > LONGEST) {
            PyErr_SetString(PyExc_ValueError, "a payload is too long");
            return NULL;
        }
        length += 1 + (size_t)size;
    }
    PyObject *joined = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
    char *to = joined ? PyBytes_AsString(joined) : NULL;
    for (size_t i = 0; to && i < count; i++) {
        PyObject *payload = PyList_GetItem(payloads, (Py_ssize_t)i);
        Py_ssize_t size = PyBytes_Size(payload);
        const char *bytes = PyBytes_AsString(payload);
        *to++ = (char)size;
        memcpy(to, bytes, (size_t)size);
        to += size;
    }
    return joined;
}

/* split_packets(data, length_bits, with_idle) -> (payloads, where each packet starts: 32-bit numbers) */
PyObject *kernel_split_packets(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    unsigned length_bits;
    int with_idle;
    if (!PyArg_ParseTuple(args, "y*Ip", &data, &length_bits, &with_idle))
        return NULL;
    const uint8_t *bytes = data.buf;
    size_t end = (size_t)data.len, count = 0;
    const uint32_t mask = length_bits < 8 ? (1u << length_bits) - 1 : 0xff;
    uint32_t *starts = malloc((end + 1) * sizeof *starts);
    PyObject *list = starts ? PyList_New(0) : PyErr_NoMemory(), *result = NULL;
    for (size_t at = 0, length; list && at < end; at += 1 + length) {
        length = bytes[at] & mask;
        if (!length && with_idle)
            continue;
        length = length < end - at ? length : end - at - 1;
        PyObject *payload = PyBytes_FromStringAndSize((const char *)bytes + at + 1, (Py_ssize_t)length);
        if (!payload || PyList_Append(list, payload))
            Py_CLEAR(list);
        Py_XDECREF(payload);
        starts[count++] = (uint32_t)at;
    }
    if (list)
        result = Py_BuildValue("Oy#", list, (char *)starts, (Py_ssize_t)(count * sizeof *starts));
    Py_XDECREF(list);
    free(starts);
    PyBuffer_Release(&data);
    return result;
}

/* packet_heads(data, length_bits, with_idle) -> the first byte of each payload, 0 if it is empty */
PyObject *kernel_packet_heads(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    unsigned length_bits;
    int with_idle;
    if (!PyArg_ParseTuple(args, "y*Ip", &data, &length_bits, &with_idle))
        return NULL;
    const uint8_t *bytes = data.buf;
    size_t end = (size_t)data.len, count = 0;
    const uint32_t mask = length_bits < 8 ? (1u << length_bits) - 1 : 0xff;
    uint8_t *heads = malloc(end + 1);
    for (size_t at = 0, length; heads && at < end; at += 1 + length) {
        length = bytes[at] & mask;
        if (length || !with_idle)
            heads[count++] = length && at + 1 < end ? bytes[at + 1] : 0;
    }
    PyObject *result = heads ? bytes_of(heads, count, 1) : PyErr_NoMemory();
    free(heads);
    PyBuffer_Release(&data);
    return result;
}

/* first_earlier(times, present, last time or None) -> the index of the first time that is earlier than the one before it,
 * -1 if there is none */
PyObject *kernel_first_earlier(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer times, present;
    PyObject *last;
    Py_ssize_t result = -1;
    if (!PyArg_ParseTuple(args, "y*y*O", &times, &present, &last))
        return NULL;
    uint64_t before = last == Py_None ? 0 : PyLong_AsUnsignedLongLong(last);
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < present.len && i < times.len / 8; i++) {
        if (!((uint8_t *)present.buf)[i])
            continue;
        uint64_t now = load((uint8_t *)times.buf + 8 * i);
        if (now < before) {
            result = i;
            break;
        }
        before = now;
    }
    PyBuffer_Release(&times);
    PyBuffer_Release(&present);
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(result);
}
