/* The program switches its own trace off and on (trTeInstTracing of the encoder at 0x20000000). */
#include <stdint.h>

#define ENCODER (*(volatile uint32_t *)0x20000000)
#define TRACING 4u

volatile unsigned sink;

__attribute__((noinline)) void work(unsigned n)
{
    while (n--)
        sink += n & 1 ? n : 3;
}

int main(void)
{
    for (int i = 0; i < 5; i++) {
        work(5);
        ENCODER &= ~TRACING;
        work(7);
        ENCODER |= TRACING;
        work(2);
    }
    return 0;
}
