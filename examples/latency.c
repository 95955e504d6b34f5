/* The question of docs/tutorials/interrupt-latency.md: why is the timer's interrupt late now and then? */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))
#define MTIME (*(volatile uint64_t *)(CLINT + 0xbff8))
#define PERIOD 2000
#define LOG 8

volatile unsigned ticks;
static uint64_t next;
static uint32_t log_[LOG];
static unsigned logged;
static uint32_t crc;

void __attribute__((interrupt, aligned(4))) on_timer(void)
{
    ticks++;
    next += PERIOD; /* a fixed grid: what comes late does not move the next one */
    MTIMECMP = next;
}

static unsigned mask(void)
{
    unsigned long old;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(old));
    return old & 8;
}

static void unmask(unsigned old) { __asm__ volatile("csrs mstatus, %0" ::"r"((unsigned long)old)); }

static uint32_t __attribute__((noinline)) crc_of(const uint32_t *words, unsigned count)
{
    uint32_t crc = ~0u;
    for (unsigned i = 0; i < count; i++)
        for (int bit = 0; bit < 32; bit++)
            crc = (crc >> 1) ^ (((crc ^ (words[i] >> bit)) & 1) ? 0xedb88320 : 0);
    return ~crc;
}

static void __attribute__((noinline)) log_word(uint32_t word)
{
    unsigned old = mask();
    log_[logged++] = word;
    if (logged == LOG) { /* full: seal it, while nothing may log */
        crc = crc_of(log_, logged);
        logged = 0;
    }
    unmask(old);
}

static uint32_t __attribute__((noinline)) work(uint32_t value)
{
    for (int i = 0; i < 60; i++)
        value = value * 1664525 + 1013904223;
    return value;
}

volatile int is_finished;
void __attribute__((noinline)) finish(void) { is_finished = 1; }

int main(void)
{
    next = MTIME + PERIOD;
    MTIMECMP = next;
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_timer));
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
    unmask(8);
    uint32_t value = 1;
    for (int i = 0; i < 100; i++)
        log_word(value = work(value));
    finish();
    return 0;
}
