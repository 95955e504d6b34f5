/* The program of docs/tutorials/coverage-in-ci.md: a self-test that passes, and a branch that it never tries. */
#include <stdint.h>

enum { OK, TOO_SHORT, BAD_LENGTH, BAD_SUM };

int passed, failed;

static uint16_t sum_of(const uint8_t *bytes, unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i + 1 < count; i += 2)
        sum += bytes[i] << 8 | bytes[i + 1];
    if (count & 1) /* the last byte of an odd number */
        sum += bytes[count - 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

int check_packet(const uint8_t *packet, unsigned size)
{
    if (size < 3)
        return TOO_SHORT;
    if (packet[0] != size)
        return BAD_LENGTH;
    uint16_t expected = (uint16_t)(packet[1] << 8 | packet[2]);
    return sum_of(packet + 3, size - 3) == expected ? OK : BAD_SUM;
}

static void expect(int result, int wanted)
{
    if (result == wanted)
        passed++;
    else
        failed++;
}

static const uint8_t good[] = {7, 0xfb, 0xf9, 1, 2, 3, 4};
static const uint8_t bad_sum[] = {7, 0xfb, 0xf8, 1, 2, 3, 4};

volatile int finished;
void __attribute__((noinline)) tests_done(void) { finished = 1; }

int main(void)
{
    expect(check_packet(good, sizeof good), OK);
    expect(check_packet(bad_sum, sizeof bad_sum), BAD_SUM);
    expect(check_packet(good, 2), TOO_SHORT);
    tests_done();
    return 0;
}
