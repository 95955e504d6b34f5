/* Traps of several causes, one after the other, in a handler written so that a debugger can stop in its parts:
 * `entered` before it has changed anything, `nested` in the handler of a trap of the handler, `after_nested` when that
 * has returned, `skipped` when mepc leads to the next instruction. */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))

volatile unsigned traps, depth, nest;

#define NOTE __attribute__((noinline)) void
NOTE entered(void) { traps++; }
NOTE nested(void) { traps += 2; }
NOTE after_nested(void) { traps += 3; }
NOTE skipped(void) { traps += 4; }
NOTE returned(void) { traps += 5; }

void __attribute__((interrupt, aligned(4))) on_trap(void)
{
    uintptr_t cause, epc, status;
    __asm__ volatile("csrr %0, mcause; csrr %1, mepc; csrr %2, mstatus" : "=r"(cause), "=r"(epc), "=r"(status));
    if (depth++) {
        nested();
    } else {
        entered();
        if (nest) {
            __asm__ volatile("sw x0, 128(x0)");
            after_nested();
        }
    }
    depth--;
    if ((intptr_t)cause < 0)
        MTIMECMP = ~0ULL;
    else
        epc += 4;
    __asm__ volatile("csrw mepc, %0; csrw mstatus, %1" ::"r"(epc), "r"(status));
    skipped();
}

NOTE illegal(void) { __asm__ volatile(".word 0xffffffff"); }
NOTE load_fault(void) { __asm__ volatile("lw x0, 64(%0)" ::"r"(0)); }
NOTE call(void) { __asm__ volatile("ecall"); }
NOTE interrupt(void)
{
    MTIMECMP = 0;
    __asm__ volatile("csrs mie, %0; csrsi mstatus, 8" ::"r"(0x80));
    while (MTIMECMP == 0)
        ;
    __asm__ volatile("csrci mstatus, 8");
}

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    illegal();
    load_fault();
    call();
    interrupt();
    nest = 1;
    illegal();
    returned();
    return 0;
}
