/* What the programs of this folder share: registers of the core-local interruptor, and how interrupts are switched on. */
#include <stddef.h>
#include <stdint.h>

#define MSIP (*(volatile uint32_t *)0x02000000UL)
#define MTIMECMP (*(volatile uint64_t *)0x02004000UL)
#define MTIME (*(volatile uint64_t *)0x0200bff8UL)
#define APART __attribute__((noinline))
#define HANDLER __attribute__((interrupt, aligned(4)))
#define SOFTWARE 8
#define TIMER 128

static inline void handle_traps(void (*handler)(void))
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(handler));
}
static inline void enable(unsigned sources)
{
    __asm__ volatile("csrs mie, %0" ::"r"(sources));
    __asm__ volatile("csrsi mstatus, 8");
}
static inline uintptr_t trap_cause(void)
{
    uintptr_t cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    return cause;
}
static inline int is_interrupt(uintptr_t cause) { return (intptr_t)cause < 0; }
static inline void step_over_trap(void)
{
    uintptr_t at;
    __asm__ volatile("csrr %0, mepc" : "=r"(at));
    __asm__ volatile("csrw mepc, %0" ::"r"(at + 4));
}
