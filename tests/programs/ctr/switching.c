/* Changes itself what is recorded, while a debugger records: kinds of transfers, nothing at all, all again. */
#include <stdint.h>

#define MCTRCTL 0x34e
#define SCTRSTATUS 0x14f
#define M (1 << 2)
#define BPFRZ (1 << 11)

/* A write that is also noted for the model, as ctr.h does. */
#define WRITE(csr, value)                                                                                      \
    __asm__ volatile("1: csrw %0, %1\n.pushsection .ctr_writes, \"\", @progbits\n.dword 1b, %0, %2\n.popsection" \
                     ::"i"(csr), "r"((uint64_t)(value)), "i"(value))
#define NOINLINE __attribute__((noinline))

volatile int result;

NOINLINE int leaf(int a) { return a + 1; }

NOINLINE int middle(int a)
{
    int sum = 0;
    if (a & 1)
        sum = leaf(a);
    for (int i = 0; i < (a & 3); i++)
        sum += leaf(a + i);
    return sum + leaf(a + 1);
}

NOINLINE void filtered(void) { __asm__ volatile(""); }
NOINLINE void all_again(void) { __asm__ volatile(""); }
NOINLINE void thawed(void) { __asm__ volatile(""); }

void __attribute__((interrupt, aligned(4))) on_trap(void)
{
    uint64_t pc;
    __asm__ volatile("csrr %0, mepc\naddi %0, %0, 4\ncsrw mepc, %0" : "=r"(pc));
}

static int some(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += middle(i);
    return sum;
}

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    int sum = some(5);
    WRITE(MCTRCTL, M | FILTERS);
    sum += some(5);
    filtered();
    WRITE(MCTRCTL, 0);
    sum += some(3);
    WRITE(MCTRCTL, M | 3);
    sum += some(4);
    all_again();
    WRITE(MCTRCTL, M | BPFRZ);
    sum += some(2);
    __asm__ volatile(".option push\n.option norvc\nebreak\n.option pop");
    sum += some(2);
    WRITE(SCTRSTATUS, 0);
    sum += some(3);
    thawed();
    result = sum;
    return 0;
}
