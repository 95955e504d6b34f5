/* The bug of docs/tutorials/why-this-value.md: an offset of the calibration that nobody has set to this. The gains are
   written through a map of channels, and one entry of the map is too large. */
#include <stdint.h>

struct calibration {
    int16_t gain[6];
    int16_t offset;
};

static struct calibration calibration;
static uint8_t slot[6];
static const uint8_t wiring[6] = {0, 2, 4, 1, 3, 5};
static const int16_t measured[6] = {10, 12, 14, 16, 18, 20};
volatile int sum;

static void __attribute__((noinline)) map_slots(int spare)
{
    for (int i = 0; i < 6; i++)
        slot[i] = wiring[i] + (wiring[i] >= spare);
}

static void __attribute__((noinline)) set_gain(int channel, int raw)
{
    int scaled = raw * 3 / 2;
    calibration.gain[slot[channel]] = scaled;
}

static int __attribute__((noinline)) corrected(int sample, int channel)
{
    return (sample - calibration.offset) * calibration.gain[slot[channel]];
}

void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }

int main(void)
{
    calibration.offset = 4;
    map_slots(5);
    for (int channel = 0; channel < 6; channel++)
        set_gain(channel, measured[channel]);
    for (int channel = 0; channel < 4; channel++)
        sum += corrected(100 + channel, channel);
    finish();
    return 0;
}
