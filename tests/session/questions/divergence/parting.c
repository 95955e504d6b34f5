/* Sorts, parses, walks a table and recurses over inputs that tests change: so runs of it part somewhere. */
#include <stdint.h>

uint8_t inputs[24] = {17, 3, 201, 44, 9, 9, 120, 77, 3, 250, 31, 8, 64, 5, 90, 33, 2, 71, 140, 18, 6, 99, 27, 54};
volatile uint32_t result;

static int __attribute__((noinline)) depth_of(unsigned value)
{
    return value < 2 ? 1 : 1 + depth_of(value & 1 ? value / 3 : value / 2);
}

static void __attribute__((noinline)) sort(uint8_t *items, int count)
{
    for (int i = 1; i < count; i++) {
        uint8_t item = items[i];
        int k = i;
        for (; k > 0 && items[k - 1] > item; k--)
            items[k] = items[k - 1];
        items[k] = item;
    }
}

static uint32_t __attribute__((noinline)) mix(uint32_t sum, uint8_t item)
{
    for (int bit = 0; bit < 8; bit++, item >>= 1)
        sum = (sum >> 1) ^ ((sum ^ item) & 1 ? 0xedb88320 : 0);
    return sum;
}

static int add(int a, int b) { return a + b; }
static int less(int a, int b) { return a < b ? a : b; }
static int shifted(int a, int b) { return a << (b & 3); }
static int (*const operations[])(int, int) = {add, less, shifted, add};

static int __attribute__((noinline)) classify(uint8_t item)
{
    switch (item & 7) {
    case 0: return 1;
    case 1: return item + 2;
    case 2: return item - 7;
    case 3: return item / 3;
    case 4: return -item;
    case 5: return 19;
    default: return item ^ 21;
    }
}

int main(void)
{
    uint32_t sum = ~0u;
    int total = 0;
    for (unsigned i = 0; i < sizeof inputs; i++) {
        total += classify(inputs[i]);
        total = operations[inputs[i] % 4](total, depth_of(inputs[i]));
    }
    sort(inputs, sizeof inputs);
    for (unsigned i = 0; i < sizeof inputs; i++)
        sum = mix(sum, inputs[i]);
    for (int k = 0; k < 8; k++)
        total += depth_of(k * 37u);
    result = sum + total;
    return 0;
}
