/* Loops whose functions they call have branches: CASE 1 counts past its bound 0, CASE 2 waits. */
#include "base.h"

static const uint8_t wire[] = {7, 3, 1, 2, 3, 7, 0, 0};
static unsigned at;
static volatile unsigned answers;
volatile unsigned sums;

APART static int next_byte(void)
{
    return at < sizeof wire ? wire[at++] : -1;
}

APART static unsigned body(uint8_t *out, unsigned length)
{
    unsigned sum = 0, i = 0;
    do {
        int byte = next_byte();
        if (byte >= 0) {
            out[i & 15] = byte;
            sum += byte;
        }
        i++;
    } while (i != length);
    return sum;
}

APART static int answered(void)
{
    return answers > 3 ? 1 : 0;
}

APART static void wait_for_answer(void)
{
    while (!answered())
        ;
}

int main(void)
{
    uint8_t data[16];
    if (CASE == 2)
        wait_for_answer();
    while (next_byte() == 7)
        sums += body(data, next_byte());
    return 0;
}
