/* A handler that returns to the instruction that trapped, and goes on after it only the 500th time. */
#include <stdint.h>

volatile unsigned traps;

void __attribute__((interrupt, aligned(4))) on_trap(void)
{
    if (++traps % 500 == 0) {
        uintptr_t epc;
        __asm__ volatile("csrr %0, mepc" : "=r"(epc));
        __asm__ volatile("csrw mepc, %0" ::"r"(epc + 4));
    }
}

__attribute__((noinline)) void fault(void) { __asm__ volatile(".word 0xffffffff"); }
__attribute__((noinline)) void done(void) { traps = 0; }

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    for (;;) {
        fault();
        done();
    }
}
