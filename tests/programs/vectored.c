/* Traps go to a vector that saves registers and calls one of two handlers, after some more work for the timer's. */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))
#define MTIME (*(volatile uint64_t *)(CLINT + 0xbff8))

volatile unsigned ticks, calls, spun;

__attribute__((noinline)) void on_timer(void)
{
    ticks++;
    MTIMECMP = MTIME + 700;
}

__attribute__((noinline)) void on_call(void)
{
    calls++;
    uint64_t mepc;
    __asm__ volatile("csrr %0, mepc" : "=r"(mepc));
    __asm__ volatile("csrw mepc, %0" ::"r"(mepc + 4));
}

__attribute__((noinline)) void prepare(void) { spun += 3; }

__attribute__((naked, aligned(4))) void vector(void)
{
    __asm__("addi sp, sp, -128\n sd ra, 0(sp)\n sd t0, 8(sp)\n sd a0, 16(sp)\n sd a1, 24(sp)\n sd a2, 32(sp)\n"
            "sd a3, 40(sp)\n sd a4, 48(sp)\n sd a5, 56(sp)\n sd a6, 64(sp)\n sd a7, 72(sp)\n"
            "csrr a0, mcause\n bltz a0, 1f\n call on_call\n j 2f\n"
            "1: call prepare\n call on_timer\n"
            "2: ld ra, 0(sp)\n ld t0, 8(sp)\n ld a0, 16(sp)\n ld a1, 24(sp)\n ld a2, 32(sp)\n ld a3, 40(sp)\n"
            "ld a4, 48(sp)\n ld a5, 56(sp)\n ld a6, 64(sp)\n ld a7, 72(sp)\n addi sp, sp, 128\n mret");
}

__attribute__((noinline)) int finish(int value) { return value; }

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(vector));
    MTIMECMP = MTIME + 700;
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
    __asm__ volatile("csrsi mstatus, 8");
    int sum = 0;
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 10; k++)
            sum += i ^ k;
        if (i % 20 == 0)
            __asm__ volatile("ecall" ::: "memory");
        if (i == 30)
            on_timer(); /* not by an interrupt */
    }
    return finish(sum);
}
