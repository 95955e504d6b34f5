/* The program of docs/diff.md: a heater that is switched by the average of some samples, read from a sensor. */
#include <stdint.h>

#define COUNT 16
#define LIMIT 40

uint8_t samples[COUNT] = {38, 39, 41, 40, 37, 36, 42, 44, 43, 39, 38, 41, 45, 40, 39, 38};
static int window[4];
volatile int is_on, changes;

static int __attribute__((noinline)) filtered(int sample)
{
    int sum = 0;
    for (int i = 3; i > 0; i--)
        sum += window[i] = window[i - 1];
    window[0] = sample;
    return (sum + sample) / 4;
}

static void __attribute__((noinline)) switch_heater(int on)
{
    is_on = on;
    changes++;
}

void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }

int main(void)
{
    for (int i = 0; i < COUNT; i++) {
        int value = filtered(samples[i]);
        if (value < LIMIT && !is_on)
            switch_heater(1);
        else if (value > LIMIT && is_on)
            switch_heater(0);
    }
    finish();
    return 0;
}
