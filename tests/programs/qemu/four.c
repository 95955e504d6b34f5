/* Four harts that take a spin lock in turn and interrupt each other: how often each does what is known beforehand, when
 * is not. The first ends QEMU when all are done. */
#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))
#define FINISHER (*(volatile uint32_t *)0x100000)
#define MSIP(hart) (((volatile uint32_t *)0x2000000)[hart])
#define HARTS 4
#ifndef TURNS
#define TURNS 40
#define CALLS 10
#endif

/* no .bss: each hart clears that when it starts */
volatile int lock = 1, shared = 1, done = 1;
volatile int called[HARTS] = {1, 1, 1, 1};

static int swap(volatile int *at, int value)
{
    int before;
    __asm__ volatile("amoswap.w.aq %0, %2, %1" : "=r"(before), "+A"(*at) : "r"(value) : "memory");
    return before;
}

static void add(volatile int *at, int value)
{
    __asm__ volatile("amoadd.w.aqrl zero, %1, %0" : "+A"(*at) : "r"(value) : "memory");
}

NOINLINE void critical(void) { shared = shared + 1; }

__attribute__((interrupt, aligned(4))) void handler(void)
{
    unsigned long hart;
    __asm__ volatile("csrr %0, mhartid" : "=r"(hart));
    MSIP(hart) = 0;
    add(&called[hart], 1);
}

NOINLINE void call(int hart)
{
    int before = called[hart];
    MSIP(hart) = 1;
    while (called[hart] == before)
        ;
}

NOINLINE void finish(void) { done = 0; }

void work(int hart)
{
    __asm__ volatile("csrw mtvec, %0\n csrw mie, %1\n csrsi mstatus, 8" ::"r"(handler), "r"(8));
    for (int i = 0; i < TURNS; i++) {
        while (swap(&lock, 0) == 0)
            ;
        critical();
        swap(&lock, 1);
        if (i % (TURNS / CALLS) == 0 && i / (TURNS / CALLS) < CALLS)
            call((hart + 1) % HARTS); /* nobody else calls that one */
    }
    add(&done, 1);
    if (hart == 0) {
        while (done != 1 + HARTS)
            ;
        finish();
        FINISHER = 0x5555;
    }
    for (;;)
        __asm__ volatile("wfi");
}

__attribute__((naked)) int main(void)
{
    __asm__("csrr a0, mhartid\n slli t0, a0, 12\n sub sp, sp, t0\n j work");
}
