/* Timer interrupts in the middle of loops, exceptions, code that changes itself, and at last sleep; ends by QEMU's test
 * device of the machine `virt`. ROUNDS: how long it runs. QUIET: without interrupts. PATCHING: the code changes. */
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 20
#endif

#define MTIME (*(volatile uint64_t *)0x200bff8)
#define MTIMECMP (*(volatile uint64_t *)0x2004000)
#define FINISHER (*(volatile uint32_t *)0x100000)

volatile unsigned ticks, faults, sink, sleeps;
extern uint32_t patch[];
unsigned patched(unsigned n);

/* The store changes an instruction of its own block. */
__asm__(".text\n.option push\n.option norvc\n.balign 4\n"
        ".globl patched, patch\n.type patched, @function\n"
        "patched: la a2, patch\n"
        "xori a3, a0, 1\nandi a3, a3, 1\nslli a3, a3, 20\n"
        "li a4, 0x00050513\nadd a4, a4, a3\n" /* addi a0, a0, 0 or 1 */
        "sw a4, 0(a2)\naddi a1, a1, 1\n"
        "patch: addi a0, a0, 0\naddi a0, a0, 2\nret\n.option pop\n");

__attribute__((interrupt, aligned(4))) void handler(void)
{
    unsigned long cause, epc;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    if ((long)cause < 0) {
        ticks++;
        MTIMECMP = sleeps ? -1 : MTIME + 5 + ticks % 7;
        return;
    }
    faults++;
    __asm__ volatile("csrr %0, mepc" : "=r"(epc));
    epc += (*(volatile uint16_t *)epc & 3) == 3 ? 4 : 2;
    __asm__ volatile("csrw mepc, %0" ::"r"(epc));
}

__attribute__((noinline)) unsigned work(unsigned n)
{
    unsigned value = n;
    for (unsigned i = 0; i < 200 + n; i++)
        value = value & 1 ? value * 3 + 1 : value / 2 + i;
    return value;
}

__attribute__((noinline)) void finish(void) { sink++; }

/* An interrupt comes in each sleep, and nowhere else. QEMU with -icount,sleep=off sets its clock forward when a hart
 * sleeps, and in one run of two hundred a little too far: its main loop may look at the clock before what it ran
 * last is counted. So nothing after a sleep may depend on the time. */
static void sleep(void)
{
    __asm__ volatile("csrci mstatus, 8");
    for (sleeps = 1; sleeps < 4; sleeps++) {
        MTIMECMP = MTIME + 50;
        __asm__ volatile("csrsi mstatus, 8\n\twfi\n\tcsrci mstatus, 8");
    }
}

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(handler));
#ifndef QUIET
    MTIMECMP = MTIME + 50;
    __asm__ volatile("csrw mie, %0\n csrsi mstatus, 8" ::"r"(0x80));
#endif
    for (unsigned round = 0; round < ROUNDS; round++) {
        sink += work(round % 50);
        __asm__ volatile("ecall");
        sink += *(volatile unsigned *)16; /* nothing is there */
#ifdef PATCHING
        sink += patched(round);
#endif
    }
#ifndef QUIET
    sleep();
#endif
    /* How long it waits for its end, nobody knows: it sleeps, or a machine that is busy would have a full ring of it. */
    __asm__ volatile("csrci mstatus, 8\n\tcsrw mie, zero");
    finish();
    FINISHER = 0x5555;
    for (;;)
        __asm__ volatile("wfi");
}
