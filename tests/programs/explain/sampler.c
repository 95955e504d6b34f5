/* Samples come by a software interrupt; the main loop waits for each, and filters. */
#include "base.h"

#define TAPS 4
#define SAMPLES 60

static volatile int ready;
static volatile int sample;
static int taps[TAPS];
int filtered[SAMPLES];

static void stuck(void)
{
    for (;;) {
    }
}

static void HANDLER on_trap(void)
{
    if (!is_interrupt(trap_cause()))
        stuck();
    sample = sample * 5 + 3;
    ready = 1;
    MSIP = 0;
}

static APART void convert(void)
{
    ready = 0;
    MSIP = 1;
}

static APART int next_sample(void)
{
    convert();
    while (!ready) {
    }
    return sample & 255;
}

static APART int average(const int *values, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

static APART void shift(int *values, int newest)
{
    for (int i = TAPS - 1; i > 0; i--)
        values[i] = values[i - 1];
    values[0] = newest;
}

int main(void)
{
    handle_traps(on_trap);
    enable(SOFTWARE);
    for (int n = 0; n < SAMPLES; n++) {
        shift(taps, next_sample());
        filtered[n] = average(taps, TAPS);
    }
    return filtered[SAMPLES - 1] & 1;
}
