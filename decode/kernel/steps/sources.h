/* The frames of several sources, sorted into one buffer for each. */
#ifndef RVTRACE_SOURCES_H
#define RVTRACE_SOURCES_H

#include "frames.h"

/* From byte `own` of the source's buffer on, the bytes come from byte `from` of the data on. */
typedef struct {
    uint32_t own, from;
} SourceRun;

typedef struct {
    uint32_t number;
    uint8_t *bytes;
    size_t length;
    SourceRun *runs;
    size_t run_count, run_capacity;
} Source;

typedef struct {
    Source *sources; /* in the order in which they come first */
    size_t count;
    uint64_t idle; /* bytes */
} SortedFrames;

enum Sorted { SORTED, NOT_FRAMES, NO_MEMORY };

/* Sort frames by the number in their bits from `low` on. NOT_FRAMES: there is something else in the data, apart from idle
 * bytes. Call `sources_free` in any case. */
enum Sorted sources_sort(SortedFrames *sorted, const uint8_t *data, size_t length, unsigned low, unsigned bits);
void sources_free(SortedFrames *sorted);

#endif
