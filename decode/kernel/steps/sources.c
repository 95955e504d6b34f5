/* The frames of several sources, sorted into one buffer for each, so that each source is decoded for itself. */
#include "sources.h"

#include <stdlib.h>

#define FIRST_RUNS 64

static uint32_t number_of(const Frame *frame, unsigned low, unsigned bits)
{
    uint64_t value = 0;
    for (unsigned i = 0, at = 0; at < low + bits && i < frame->length; i++, at += DATA_BITS) {
        value |= (uint64_t)(frame->bytes[i] >> 2) << at;
        if (frame->bytes[i] & 0b11)
            break;
    }
    return (uint32_t)(value >> low & ((1ull << bits) - 1));
}

/* `index` has the place of each source in `sorted`, plus one. */
static Source *source_of(SortedFrames *sorted, uint32_t *index, uint32_t number, size_t length)
{
    if (index[number])
        return &sorted->sources[index[number] - 1];
    Source *sources = realloc(sorted->sources, (sorted->count + 1) * sizeof *sources);
    if (!sources)
        return NULL;
    sorted->sources = sources;
    Source *source = &sources[sorted->count];
    *source = (Source){.number = number, .bytes = malloc(length)};
    sorted->count++;
    index[number] = (uint32_t)sorted->count;
    return source->bytes ? source : NULL;
}

static int add(Source *source, const Frame *frame, size_t from)
{
    const SourceRun *last = source->run_count ? &source->runs[source->run_count - 1] : NULL;
    if (!last || last->from + (source->length - last->own) != from) {
        if (source->run_count == source->run_capacity) {
            size_t capacity = source->run_capacity ? 2 * source->run_capacity : FIRST_RUNS;
            SourceRun *runs = realloc(source->runs, capacity * sizeof *runs);
            if (!runs)
                return -1;
            source->runs = runs;
            source->run_capacity = capacity;
        }
        source->runs[source->run_count++] = (SourceRun){(uint32_t)source->length, (uint32_t)from};
    }
    memcpy(source->bytes + source->length, frame->bytes, frame->length);
    source->length += frame->length;
    return 0;
}

static enum Sorted sort(SortedFrames *sorted, uint32_t *index, const uint8_t *data, size_t length, unsigned low,
                        unsigned bits)
{
    for (size_t at = 0; at < length;) {
        Frame frame;
        if (data[at] == IDLE) {
            at++;
            sorted->idle++;
            continue;
        }
        if (!cut(data + at, length - at, &frame))
            return NOT_FRAMES;
        Source *source = source_of(sorted, index, number_of(&frame, low, bits), length);
        if (!source || add(source, &frame, at))
            return NO_MEMORY;
        at += frame.length;
    }
    return SORTED;
}

enum Sorted sources_sort(SortedFrames *sorted, const uint8_t *data, size_t length, unsigned low, unsigned bits)
{
    *sorted = (SortedFrames){0};
    uint32_t *index = calloc((size_t)1 << bits, sizeof *index);
    enum Sorted result = index ? sort(sorted, index, data, length, low, bits) : NO_MEMORY;
    free(index);
    return result;
}

void sources_free(SortedFrames *sorted)
{
    for (size_t i = 0; i < sorted->count; i++) {
        free(sorted->sources[i].bytes);
        free(sorted->sources[i].runs);
    }
    free(sorted->sources);
}
