/* Three address spaces with code at the same addresses (Sv39 or Sv32, by ASID): the first has `first` there, the other
 * two have `second`, from the same memory, as after a fork. Each system call switches to the next one. They take other
 * branches, so that the trace of one does not fit the other's code. */
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 12
#endif
#define NAKED __attribute__((naked, noinline, noclone, aligned(4096)))
#define csrw(name, value) __asm__ volatile("csrw " #name ", %0" ::"r"((unsigned long)(value)) : "memory")
#define csrr(name) ({ unsigned long value_; __asm__ volatile("csrr %0, " #name : "=r"(value_)); value_; })

#define RAM 0x80000000ul
#define USER 0x40000000ul
#if __riscv_xlen == 64
#define LEVELS 3
#define BITS 9
#define SATP (8ul << 60)
#define ASID_AT 44
#else
#define LEVELS 2
#define BITS 10
#define SATP (1ul << 31)
#define ASID_AT 22
#endif
#define ENTRIES (1 << BITS)
#define LEAF(physical, user) ((physical) >> 12 << 10 | 0xcf | (user) << 4)
#define BRANCH(table) ((unsigned long)(table) >> 12 << 10 | 1)

/* in .data: no time is lost with clearing them */
unsigned long tables[3][LEVELS][ENTRIES] __attribute__((aligned(4096))) = {{{1}}};
volatile unsigned long calls = 1;

NAKED void first(void)
{
    __asm__ volatile("1: li a0, 3\n2: addi a0, a0, -1\n bnez a0, 2b\n ecall\n j 1b");
}

NAKED void second(void)
{
    __asm__ volatile("1: li a0, 8\n2: andi a1, a0, 1\n beqz a1, 3f\n addi a2, a2, 1\n jal a3, 4f\n3: addi a2, a2, 2\n"
                     "4: addi a0, a0, -1\n bgtz a0, 2b\n ecall\n j 1b");
}

__attribute__((noinline)) void finish(void) { calls++; }

static void enter(int space)
{
    csrw(satp, SATP | (unsigned long)(space + 5) << ASID_AT | (unsigned long)tables[space][0] >> 12);
    __asm__ volatile("sfence.vma" ::: "memory");
}

__attribute__((interrupt("supervisor"), aligned(4))) void supervisor_trap(void)
{
    static int space;
    if (calls++ == ROUNDS) {
        finish();
        *(volatile uint32_t *)0x100000 = 0x5555;
        for (;;)
            __asm__ volatile("wfi");
    }
    /* Twice the first, so that the third is met when the second is known */
    csrw(sepc, space == 0 && calls < 4 ? csrr(sepc) + 4 : USER);
    space = calls < 4 ? 0 : (space + 1) % 3;
    enter(space);
}

int main(void)
{
    for (int space = 0; space < 3; space++) {
        unsigned long (*of)[ENTRIES] = tables[space];
        int top = BITS * (LEVELS - 1) + 12;
        of[0][0] = LEAF(0ul, 0);
        of[0][RAM >> top] = LEAF(RAM, 0);
        for (int level = 1; level < LEVELS; level++)
            of[level - 1][(USER >> (top - BITS * (level - 1))) % ENTRIES] = BRANCH(of[level]);
        of[LEVELS - 1][(USER >> 12) % ENTRIES] = LEAF((unsigned long)(space ? second : first), 1);
    }
    csrw(pmpaddr0, -1l);
    csrw(pmpcfg0, 0x1f);
    csrw(stvec, supervisor_trap);
    csrw(medeleg, 1 << 8);
    enter(0);
    csrw(mstatus, 0); /* to user mode, which has no stack: sp is that of whoever handles a trap */
    csrw(mepc, USER);
    __asm__ volatile("mret");
    __builtin_unreachable();
}
