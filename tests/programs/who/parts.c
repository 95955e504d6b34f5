/* What `trace who-wrote` says of the parts of arrays and structures: each was written by another instruction. */
#include <stdint.h>

struct device {
    int16_t gain[3];
    unsigned low : 3, high : 5;
    union {
        uint8_t byte;
        uint32_t word;
    };
    union {
        uint8_t first;
        uint16_t all;
    } flags;
    struct {
        int x, y;
    } place;
    struct device *next;
    int never;
    unsigned four : 4, ten : 10;
} device;
int table[20];

void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }

int main(void)
{
    volatile struct device *it = &device;
    for (int i = 0; i < 20; i += 1 + (i > 3))
        ((volatile int *)table)[i] = 3 * i + 1;
    it->gain[2] = 5;
    it->gain[1] = -6;
    it->word = 0x01020304;
    it->byte = 9;
    it->flags.all = 0x1234;
    it->place.y = 7;
    it->place.x = 8;
    it->high = 21;
    it->low = 3;
    it->next = &device;
    it->ten = 0x155;
    ((volatile uint8_t *)it)[36] = 0x5a; /* some of the bits of two */
    it->gain[0] = 4;
    finish();
    return 0;
}
