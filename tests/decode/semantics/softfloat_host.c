/* The host's own floating-point unit as an oracle for test_softfloat.py: x86-64, SSE, and libm's fma().
 *
 * usage: softfloat_host OPERATION WIDTH < operands > results
 * operands: records of three 64-bit words a, b, c; results: for rm RNE, RTZ, RDN, RUP in turn, per operand record
 * the result's bits and its fflags, two 64-bit words. Variables are volatile so that each operation happens once,
 * between feclearexcept and fetestexcept.
 */
#include <emmintrin.h>
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int rounding[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

enum operation { ADD, SUB, MUL, DIV, SQRT, FMA, EQ, LT, LE, TO_W, TO_L, FROM_W, FROM_WU, FROM_L, FROM_LU, CONVERT, NONE };

static const char *const names[] = {"add", "sub", "mul", "div", "sqrt", "fma", "eq", "lt", "le", "to_w", "to_l",
                                    "from_w", "from_wu", "from_l", "from_lu", "convert"};

static uint64_t bits32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t bits64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float32(uint64_t bits) {
    float value;
    uint32_t low = (uint32_t)bits;
    memcpy(&value, &low, sizeof value);
    return value;
}

static double float64(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define WORD(value) ((uint64_t)(uint32_t)(value))

/* T: this format, O: the other one (CONVERT's result) */
#define OPERATIONS(T, VALUE, BITS, O, OTHER_BITS, SQUARE_ROOT, MULTIPLY_ADD, TO_INT32, TO_INT64)     \
    static uint64_t apply_##T(enum operation op, const uint64_t *in) {                                \
        volatile T a = VALUE(in[0]), b = VALUE(in[1]), c = VALUE(in[2]), r = 0;                       \
        volatile O other;                                                                             \
        volatile uint64_t n = in[0];                                                                  \
        volatile int32_t w = (int32_t)in[0];                                                          \
        volatile uint32_t wu = (uint32_t)in[0];                                                       \
        volatile int64_t l = (int64_t)in[0];                                                          \
        feclearexcept(FE_ALL_EXCEPT);                                                                 \
        switch (op) {                                                                                 \
        case ADD: r = a + b; return BITS(r);                                                          \
        case SUB: r = a - b; return BITS(r);                                                          \
        case MUL: r = a * b; return BITS(r);                                                          \
        case DIV: r = a / b; return BITS(r);                                                          \
        case SQRT: r = SQUARE_ROOT(a); return BITS(r);                                                \
        case FMA: r = MULTIPLY_ADD(a, b, c); return BITS(r);                                          \
        case EQ: n = a == b; return n;                                                                \
        case LT: n = a < b; return n;                                                                 \
        case LE: n = a <= b; return n;                                                                \
        case TO_W: n = WORD(TO_INT32(a)); return n;                                                   \
        case TO_L: n = (uint64_t)TO_INT64(a); return n;                                               \
        case FROM_W: r = (T)w; return BITS(r);                                                        \
        case FROM_WU: r = (T)wu; return BITS(r);                                                      \
        case FROM_L: r = (T)l; return BITS(r);                                                        \
        case FROM_LU: r = (T)n; return BITS(r);                                                       \
        case CONVERT: other = (O)a; return OTHER_BITS(other);                                         \
        case NONE: break;                                                                             \
        }                                                                                             \
        abort();                                                                                      \
    }

#define FLOAT_TO_INT32(a) _mm_cvtss_si32(_mm_set_ss(a))
#define FLOAT_TO_INT64(a) _mm_cvtss_si64(_mm_set_ss(a))
#define DOUBLE_TO_INT32(a) _mm_cvtsd_si32(_mm_set_sd(a))
#define DOUBLE_TO_INT64(a) _mm_cvtsd_si64(_mm_set_sd(a))

OPERATIONS(float, float32, bits32, double, bits64, sqrtf, fmaf, FLOAT_TO_INT32, FLOAT_TO_INT64)
OPERATIONS(double, float64, bits64, float, bits32, sqrt, fma, DOUBLE_TO_INT32, DOUBLE_TO_INT64)

/* the RISC-V bits of the raised exceptions */
static uint64_t fflags(void) {
    int raised = fetestexcept(FE_ALL_EXCEPT);
    return (raised & FE_INEXACT ? 1 : 0) | (raised & FE_UNDERFLOW ? 2 : 0) | (raised & FE_OVERFLOW ? 4 : 0) |
           (raised & FE_DIVBYZERO ? 8 : 0) | (raised & FE_INVALID ? 16 : 0);
}

static size_t read_all(uint64_t **records) {
    size_t used = 0, room = 1 << 16, got;
    *records = malloc(room);
    while (*records && (got = fread((char *)*records + used, 1, room - used, stdin)) > 0) {
        used += got;
        if (used == room) *records = realloc(*records, room *= 2);
    }
    if (!*records) abort();
    return used / (3 * sizeof **records);
}

int main(int argc, char **argv) {
    uint64_t *records;
    int op = 0;
    if (argc != 3) return 2;
    while (op < NONE && strcmp(argv[1], names[op])) op++;
    if (op == NONE) return 2;
    int wide = !strcmp(argv[2], "64");
    size_t count = read_all(&records);
    for (int rm = 0; rm < 4; rm++) {
        fesetround(rounding[rm]);
        for (size_t i = 0; i < count; i++) {
            uint64_t out[2];
            out[0] = wide ? apply_double(op, records + 3 * i) : apply_float(op, records + 3 * i);
            out[1] = fflags();
            fwrite(out, sizeof out, 1, stdout);
        }
    }
    return fflush(stdout) ? 1 : 0;
}
