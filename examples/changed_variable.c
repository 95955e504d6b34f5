/* The bug of docs/tutorials/who-changed-this-variable.md: a loop writes one element past the end of an array, which is
   the variable after it. */
#include <stdint.h>

#define SAMPLES 8

static struct {
    uint16_t samples[SAMPLES];
    uint16_t limit;
} filter = {.limit = 1000};

unsigned alarms;

static void add_sample(unsigned at, uint16_t value)
{
    filter.samples[at] = value;
}

static void read_samples(unsigned seed)
{
    for (unsigned i = 0; i <= SAMPLES; i++)
        add_sample(i, (uint16_t)(seed * 31 + i * 7));
}

static void check(void)
{
    for (unsigned i = 0; i < SAMPLES; i++)
        if (filter.samples[i] > filter.limit)
            alarms++;
}

volatile unsigned reported;
void __attribute__((noinline)) report(void) { reported = alarms; }

int main(void)
{
    for (unsigned seed = 1; seed < 6; seed++) {
        if (seed == 3)
            read_samples(seed);
        check();
    }
    report();
    return 0;
}
