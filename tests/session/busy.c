/* Never ends and never does the same for long: recursion, calls through pointers, a switch. Makes a lot of trace. */
#include <stdint.h>

static uint32_t state = 1;

static uint32_t next(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t mix(uint32_t a, uint32_t b) { return b & 1 ? a ^ b : a - b; }
static uint32_t deep(uint32_t a, uint32_t b) { return b % 7 ? deep(a + 1, b - 1) + 1 : a; }

typedef uint32_t (*operation)(uint32_t, uint32_t);
static const operation operations[] = {add, mix, deep};

volatile uint32_t result;

int main(void)
{
    for (;;) {
        uint32_t n = next();
        uint32_t value = operations[n % 3](n, n >> 7);
        switch (value & 7) {
        case 0: result += value; break;
        case 1: result ^= 1; break;
        case 2: result = ~value; break;
        case 3: result -= 3; break;
        case 5: result <<= 1; break;
        default: break;
        }
    }
}
