/* Nothing repeats: every branch hangs on a random number, so no message is like another. The empty assembler statements
   keep the compiler from doing without the branches. */

#include <stdint.h>

volatile uint32_t result;
static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint32_t odd(uint32_t x) { return x * 3 + 1; }
static uint32_t even(uint32_t x) { return x / 2; }
static uint32_t high(uint32_t x) { return x - 0x10000; }
static uint32_t (*const steps[4])(uint32_t) = {odd, even, high, odd};

int main(void)
{
    for (uint32_t sum = 0;;) {
        uint64_t bits = next(), other = next();
        for (; bits; bits >>= 1, other >>= 1) {
            if (bits & 1) {
                sum += 7;
                __asm__ volatile("" : "+r"(sum));
            }
            sum ^= (uint32_t)bits;
            if (other & bits & 2) {
                sum -= 3;
                __asm__ volatile("" : "+r"(sum));
            }
        }
        result = sum = steps[sum & 3](sum);
    }
}
