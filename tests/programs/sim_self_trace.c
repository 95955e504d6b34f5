/* A program that traces a part of itself, by storing to the trace registers in the order the document gives. */
#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define ENCODER 0x20000000u
#define RAM_SINK 0x20001000u
#define BUFFER 0x30000000u

volatile unsigned total;

__attribute__((noinline)) unsigned half(unsigned n) { return n & 1 ? 3 * n + 1 : n / 2; }

__attribute__((noinline)) void traced(unsigned n)
{
    while (n != 1) {
        n = half(n);
        total++;
    }
}

static void control(uint32_t base, uint32_t value, uint32_t mask, uint32_t wanted)
{
    REG(base) = value;
    while ((REG(base) & mask) != wanted)
        ;
}

int main(void)
{
    control(RAM_SINK, 0, 1, 0);
    control(RAM_SINK, 1, 1, 1);
    control(ENCODER, 0, 1, 0);
    control(ENCODER, 1, 1, 1);
    REG(RAM_SINK) = 0x11;
    REG(RAM_SINK + 0x10) = BUFFER;
    REG(RAM_SINK + 0x18) = BUFFER + 0xfffc;
    REG(RAM_SINK + 0x20) = BUFFER;
    control(RAM_SINK, 0x13, 2, 2);
    REG(ENCODER + 8) = 0;
    REG(ENCODER) = 0x01000061;
    control(ENCODER, 0x01000063, 2, 2);
    traced(6);
    REG(ENCODER) = 0x01000067;
    traced(27);
    REG(ENCODER) = 0x01000063;
    traced(7);
    control(ENCODER, 0x01000061, 0xa, 8);
    control(RAM_SINK, 0x11, 0xa, 8);
    return 0;
}
