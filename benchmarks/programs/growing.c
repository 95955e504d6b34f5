/* A few hundred bytes of trace for each round, whatever the encoder: branches on random numbers. `rounds_done` is called
   after every `rounds` of them, which a debugger may change. */

#include <stdint.h>

volatile uint32_t rounds = 1, result;
static uint64_t state = 88172645463325252u;

__attribute__((noinline)) void rounds_done(void) { __asm__ volatile(""); }

static void round_of_branches(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    for (uint64_t bits = state; bits; bits >>= 1) {
        if (bits & 1) {
            result += 7;
        }
    }
}

int main(void)
{
    for (;;) {
        for (uint32_t left = rounds; left; left--) {
            round_of_branches();
        }
        rounds_done();
    }
}
