/* A reading that was never taken: measure() leaves *reading alone when its channel is off, and its caller uses what an
   earlier call left on the stack. The text of it is seen two library calls later. */
#include <stdlib.h>
#include <string.h>

struct reading { int channel, level, count; };
static volatile int enabled[4] = {1, 1, 0, 1};
static char shown[24];
volatile int first_digit;

static void __attribute__((noinline)) measure(int channel, struct reading *reading)
{
    if (enabled[channel]) {
        reading->channel = channel;
        reading->level = 10 * channel + 3;
        reading->count = 1;
    }
}

static int __attribute__((noinline)) level_of(int channel)
{
    struct reading reading;
    measure(channel, &reading);
    return reading.level * 2;
}

static int __attribute__((noinline)) mixture(int seed)
{
    volatile int scratch[8];
    for (int i = 0; i < 8; i++)
        scratch[i] = seed * 9 + i;
    return scratch[3] + scratch[6];
}

static void __attribute__((noinline)) show(int level)
{
    char text[24];
    int at = 23;
    text[at] = 0;
    do {
        text[--at] = '0' + level % 10;
        level /= 10;
    } while (level);
    memcpy(shown, text + at, 24 - at);
}

void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }

int main(void)
{
    int sum = level_of(1) + mixture(5);
    show(level_of(2) + (sum > 100000));
    first_digit = strtol(shown, NULL, 10) % 100;
    finish();
    return 0;
}
