/* Waits for a timer's interrupt and for a device, as long as both take; then it does something with its inputs. */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))
#define MTIME (*(volatile uint64_t *)(CLINT + 0xbff8))

uint32_t period[4] = {400, 0x5eed0001, 7, 6};
volatile uint32_t ticks;
static uint64_t next;

void __attribute__((interrupt, aligned(4))) on_timer(void)
{
    ticks++;
    next += period[0];
    MTIMECMP = next;
}

static int __attribute__((noinline)) is_later(uint64_t time)
{
    return MTIME >= time;
}

void __attribute__((noinline)) wait_for_tick(uint32_t number)
{
    while (ticks < number)
        ;
}

void __attribute__((noinline)) wait_for_time(uint64_t time)
{
    while (!is_later(time))
        ;
}

static unsigned __attribute__((noinline)) work(unsigned value)
{
    for (unsigned i = 0; i < period[2]; i++)
        value = value * 1664525 + (value & 1 ? period[3] : 1);
    return value;
}

volatile unsigned result;

int main(void)
{
    next = MTIME + period[0];
    MTIMECMP = next;
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_timer));
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
    __asm__ volatile("csrs mstatus, %0" ::"r"(8));
    unsigned value = 1;
    for (unsigned k = 1; k < 12; k++) {
        value = work(value + k);
        wait_for_tick(k);
        wait_for_time(MTIME + period[0] / 3);
        value = work(value);
    }
    __asm__ volatile("csrc mstatus, %0" ::"r"(8));
    result = value;
    return 0;
}
