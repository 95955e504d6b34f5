/* Packets in a stream, cut and sorted by source and content, in one pass. See packet_frames.h. */
#include "packet_frames.h"

#include <stdlib.h>

#define MAX_SIZE 64 /* bytes of a packet; Python has none that are longer */
#define NO_GROUP 0
#define FIRST_ROOM 64

size_t unit_size(const PacketFormat *format, const uint8_t *data, size_t left)
{
    const PacketKind *kind = &format->kinds[data[0]];
    if (!kind->size || kind->size > left)
        return 0;
    if (kind->content == IDLE_BYTES)
        for (size_t i = 1; i < kind->size; i++)
            if (data[i])
                return 0;
    return kind->size;
}

/* What is in a packet */

typedef struct {
    uint8_t bytes[MAX_SIZE + 16]; /* source, type and payload, without the timestamp; zeros behind them */
    size_t length;
    uint64_t time;
} Body;

/* Copy the body of a packet, and read its timestamp, which may start inside a byte. */
static void read_body(const PacketFormat *format, const PacketKind *kind, const uint8_t *packet, Body *body)
{
    const uint8_t *from = packet + kind->begin;
    size_t length = (size_t)kind->end - kind->begin, split = format->source_bits / 8;
    unsigned phase = format->source_bits % 8;
    memset(body->bytes + length, 0, 16);
    body->length = length;
    if (!kind->timed) {
        memcpy(body->bytes, from, length);
        return;
    }
    uint8_t padded[16] = {0};
    size_t behind = split + format->time_bytes;
    memcpy(padded, from + split, length - split < 9 ? length - split : 9);
    body->time = load(padded) >> phase | (phase ? (uint64_t)padded[8] << (64 - phase) : 0);
    body->time = low_bytes(body->time, format->time_bytes);
    memcpy(body->bytes, from, split);
    memcpy(body->bytes + split, from + behind, length - behind);
    body->length -= format->time_bytes;
    memset(body->bytes + body->length, 0, 16);
    uint8_t mask = (uint8_t)((1u << phase) - 1);
    body->bytes[split] = (uint8_t)((from[split] & mask) | (body->bytes[split] & ~mask));
}

/* Write the payload, which starts at bit `shift` of the body, and return its length. */
static size_t write_payload(const PacketFormat *format, const Body *body, unsigned shift, uint8_t *payload)
{
    size_t bits = 8 * body->length > shift ? 8 * body->length - shift : 0;
    int rounded_up = format->packed || bits < 8;
    size_t length = rounded_up ? (bits + 7) / 8 : bits / 8;
    const uint8_t *from = body->bytes + shift / 8;
    unsigned phase = shift % 8;
    for (size_t i = 0; i < length; i++)
        payload[i] = phase ? (uint8_t)(from[i] >> phase | from[i + 1] << (8 - phase)) : from[i];
    unsigned last = bits % 8;
    if (rounded_up && last && payload[length - 1] >> (last - 1) & 1)
        payload[length - 1] |= (uint8_t)(0xffu << last);
    return length;
}

/* Groups */

static int grow(void *array, size_t count, size_t size)
{
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, count * size);
    if (!grown)
        return -1;
    memcpy(array, &grown, sizeof grown);
    return 0;
}

static int add_group(CutPackets *cut, uint32_t source, enum Content content)
{
    if (cut->count == cut->capacity) {
        size_t capacity = cut->capacity ? 2 * cut->capacity : 16;
        if (grow(&cut->groups, capacity, sizeof *cut->groups))
            return -1;
        cut->capacity = capacity;
    }
    cut->groups[cut->count++] = (PacketGroup){.source = source, .content = content};
    return 0;
}

static int make_room(PacketGroup *group, int timed)
{
    if (group->capacity < group->length + 1 + MAX_SIZE) {
        size_t capacity = 2 * group->capacity + FIRST_ROOM * 8;
        if (grow(&group->payloads, capacity, 1))
            return -1;
        group->capacity = capacity;
    }
    if (group->count < group->room)
        return 0;
    size_t room = 2 * group->room + FIRST_ROOM;
    if (grow(&group->offsets, room, sizeof *group->offsets) || grow(&group->sizes, room, 1) ||
        (timed && (grow(&group->times, room, sizeof *group->times) || grow(&group->present, room, 1))))
        return -1;
    group->room = room;
    return 0;
}

/* `last`: the last group of each source, plus one. Returns the group for a packet; NULL if there is no memory. */
static PacketGroup *group_of(CutPackets *cut, uint32_t *last, uint32_t source, enum Content content)
{
    uint32_t number = last[source];
    if (number != NO_GROUP && cut->groups[number - 1].content == content)
        return &cut->groups[number - 1];
    if (add_group(cut, source, content))
        return NULL;
    if (number != NO_GROUP)
        cut->groups[number - 1].next = cut->count;
    last[source] = (uint32_t)cut->count;
    return &cut->groups[cut->count - 1];
}

static enum Content content_of(const PacketFormat *format, const PacketKind *kind, uint64_t head)
{
    if (!format->type_bits)
        return kind->content;
    uint32_t type = (uint32_t)(head >> format->source_bits & ((1u << format->type_bits) - 1));
    return type == format->instruction ? INSTRUCTION : type == format->data ? DATA : OTHER;
}

static int sort_packet(CutPackets *cut, uint32_t *last, const PacketFormat *format, const uint8_t *data, size_t at)
{
    const PacketKind *kind = &format->kinds[data[at]];
    Body body;
    read_body(format, kind, data + at, &body);
    uint64_t head = load(body.bytes);
    uint32_t source = (uint32_t)(head & ((1u << format->source_bits) - 1));
    PacketGroup *group = group_of(cut, last, source, content_of(format, kind, head));
    if (!group || make_room(group, format->time_bytes > 0))
        return -1;
    uint8_t *to = group->payloads + group->length;
    *to = (uint8_t)write_payload(format, &body, format->source_bits + format->type_bits, to + 1);
    group->length += 1 + (size_t)*to;
    group->offsets[group->count] = (uint32_t)at;
    group->sizes[group->count] = kind->size;
    if (format->time_bytes) {
        group->present[group->count] = kind->timed;
        group->times[group->count] = kind->timed ? body.time : 0;
    }
    group->bytes += kind->size;
    group->count++;
    return 0;
}

static int sort_packets(CutPackets *cut, const PacketFormat *format, const uint8_t *data, size_t at)
{
    uint32_t *last = calloc((size_t)1 << format->source_bits, sizeof *last);
    int failed = !last;
    while (at < cut->end && !failed) {
        const PacketKind *kind = &format->kinds[data[at]];
        if (kind->content != IDLE_BYTES)
            failed = sort_packet(cut, last, format, data, at);
        at += kind->size;
    }
    free(last);
    return failed ? -1 : 0;
}

int packets_cut(CutPackets *cut, const PacketFormat *format, const uint8_t *data, size_t at, size_t end)
{
    *cut = (CutPackets){.plain = format->plain, .end = at};
    while (cut->end < end) {
        size_t size = unit_size(format, data + cut->end, end - cut->end);
        enum Content content = format->kinds[data[cut->end]].content;
        if (!size)
            break;
        if (content == IDLE_BYTES)
            cut->idle += size;
        else
            cut->packets++;
        if (content == DATA || content == OTHER)
            cut->plain = 0;
        cut->end += size;
    }
    return cut->plain || !cut->packets ? 0 : sort_packets(cut, format, data, at);
}

void packets_release(CutPackets *cut)
{
    for (size_t i = 0; i < cut->count; i++) {
        free(cut->groups[i].payloads);
        free(cut->groups[i].offsets);
        free(cut->groups[i].times);
        free(cut->groups[i].sizes);
        free(cut->groups[i].present);
    }
    free(cut->groups);
}
