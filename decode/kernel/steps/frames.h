/* A frame: the bytes of one message. Each byte has two marks in its low bits: 00 continues, 01 ends a field, 11 ends the
 * frame, 10 is never sent. What the other six bits mean is not known here. */
#ifndef RVTRACE_FRAMES_H
#define RVTRACE_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "reads eight bytes as a number and counts its zero bits: needs GCC or Clang, and a little-endian machine"
#endif

#define MAX_FRAME 4096 /* bytes; a longer one is for Python to judge */
#define INLINE_BYTES 16 /* of a frame that two numbers hold */
#define IDLE 0xff /* between frames */
#define MARKS 0x0101010101010101ull
#define DATA_BITS 6 /* of each byte */

/* `low` and `high` are the bytes as numbers, 0 behind the end; only if there are at most INLINE_BYTES of them. */
typedef struct {
    const uint8_t *bytes;
    uint32_t length;
    uint64_t low, high;
} Frame;

static inline uint64_t load(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

static inline uint64_t low_bytes(uint64_t number, unsigned count)
{
    return count >= 8 ? number : number & ((1ull << 8 * count) - 1);
}

static inline uint64_t ends_in(uint64_t bytes) { return bytes & bytes >> 1 & MARKS; }
static inline uint64_t faults_in(uint64_t bytes) { return ~bytes & bytes >> 1 & MARKS; }
static inline unsigned bytes_to_first(uint64_t marks) { return ((unsigned)__builtin_ctzll(marks) >> 3) + 1; }

/* Cut the frame at `bytes`, of which `left` are there. Returns 0 if it cannot be a message. */
static inline int cut(const uint8_t *bytes, size_t left, Frame *frame)
{
    uint8_t padded[INLINE_BYTES] = {0};
    const uint8_t *from = bytes;
    if (left < INLINE_BYTES) { /* do not read what may not be there */
        memcpy(padded, bytes, left);
        from = padded;
    }
    uint64_t low = load(from), end = ends_in(low);
    frame->bytes = bytes;
    frame->high = 0;
    if (low & 0b11)
        return 0;
    if (end) {
        frame->length = bytes_to_first(end);
        frame->low = low_bytes(low, frame->length);
        return !faults_in(frame->low);
    }
    uint64_t high = load(from + 8);
    end = ends_in(high);
    frame->low = low;
    if (end) {
        unsigned count = bytes_to_first(end);
        frame->length = 8 + count;
        frame->high = low_bytes(high, count);
        return !faults_in(low) && !faults_in(frame->high);
    }
    if (faults_in(low) || faults_in(high))
        return 0;
    size_t i = INLINE_BYTES;
    while (i < left && (bytes[i] & 0b11) < 0b10)
        i++;
    if (i >= left || i >= MAX_FRAME || (bytes[i] & 0b11) == 0b10)
        return 0;
    frame->length = (uint32_t)i + 1;
    return 1;
}

#endif
