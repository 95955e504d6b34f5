/* Packets in a stream, cut and sorted by source and content. Python tells what each first byte means. */
#ifndef RVTRACE_PACKET_FRAMES_H
#define RVTRACE_PACKET_FRAMES_H

#include "frames.h"

enum Content { INSTRUCTION, DATA, OTHER, IDLE_BYTES };

/* What Python tells of the packets, or the units of idle bytes, that start with a byte: their size in bytes (0: there are
 * none), what they contain, whether they have a timestamp, and the bytes from `begin` to `end` - 1 of which source, type
 * and payload are. An idle unit has zeros after its first byte. It packs one byte for each. */
typedef struct {
    uint8_t size, content, timed, begin, end;
} PacketKind;

/* `content` of a packet is that of its type, if there are type bits. `plain`: packets that are all for the only source
 * are in the form that packets.h describes. `packed`: a payload may end at any bit, and is sign-extended. */
typedef struct {
    PacketKind kinds[256];
    unsigned source_bits, time_bytes, type_bits, instruction, data;
    int packed, plain;
} PacketFormat;

/* Consecutive packets of one source with the same content: a byte with the length and the payload of each, where in the
 * data it is, its size there, and its time. */
typedef struct {
    uint32_t source;
    enum Content content;
    uint8_t *payloads;
    size_t length, capacity;
    uint32_t *offsets;
    uint64_t *times;
    uint8_t *sizes, *present;
    size_t count, room;
    size_t bytes; /* of the packets in the data */
    size_t next;  /* group of this source, plus one */
} PacketGroup;

typedef struct {
    PacketGroup *groups;
    size_t count, capacity;
    size_t end;  /* of the last packet, or unit of idle bytes, that is complete */
    size_t idle; /* bytes */
    size_t packets;
    int plain; /* the packets are in the data as they are to be, and there are no groups */
} CutPackets;

/* Returns -1 if there is no memory. Call `packets_release` in any case. */
int packets_cut(CutPackets *cut, const PacketFormat *format, const uint8_t *data, size_t at, size_t end);
void packets_release(CutPackets *cut);

/* How many bytes the unit that starts here has, if it is complete, else 0. */
size_t unit_size(const PacketFormat *format, const uint8_t *data, size_t left);

#endif
