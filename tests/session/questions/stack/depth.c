/* Stacks of every sort: of main, of two tasks, of interrupts; recursion, alloca, a frame that code makes in two steps. */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint32_t *)(CLINT + 0x4000))
#define MTIMECMP_HIGH (*(volatile uint32_t *)(CLINT + 0x4004))
#define MTIME (*(volatile uint32_t *)(CLINT + 0xbff8))
#define PERIOD 700

unsigned long irq_stack[160] __attribute__((aligned(16)));
unsigned long task_a_stack[200] __attribute__((aligned(16)));
unsigned long task_b_stack[300] __attribute__((aligned(16)));
unsigned long main_sp, a_sp, b_sp;
volatile unsigned ticks, total;

void switch_stack(unsigned long *from, unsigned long *to);
void on_trap(void);

#if __riscv_xlen == 64
#define S "sd"
#define L "ld"
#define B "8"
#else
#define S "sw"
#define L "lw"
#define B "4"
#endif

__asm__(".globl switch_stack\n.type switch_stack, @function\nswitch_stack:\n"
        " addi sp, sp, -64\n " S " ra, 0*" B "(sp)\n " S " s0, 1*" B "(sp)\n " S " s1, 2*" B "(sp)\n"
        " " S " sp, 0(a0)\n " L " sp, 0(a1)\n"
        " " L " ra, 0*" B "(sp)\n " L " s0, 1*" B "(sp)\n " L " s1, 2*" B "(sp)\n addi sp, sp, 64\n ret\n"
        ".size switch_stack, . - switch_stack\n"
        ".balign 4\n.globl on_trap\n.type on_trap, @function\non_trap:\n"
        " csrrw sp, mscratch, sp\n addi sp, sp, -160\n"
        " " S " ra, 0*" B "(sp)\n " S " a0, 1*" B "(sp)\n " S " a1, 2*" B "(sp)\n " S " a2, 3*" B "(sp)\n"
        " " S " a3, 4*" B "(sp)\n " S " a4, 5*" B "(sp)\n " S " a5, 6*" B "(sp)\n " S " t0, 7*" B "(sp)\n"
        " " S " t1, 8*" B "(sp)\n " S " t2, 9*" B "(sp)\n " S " a6, 10*" B "(sp)\n " S " a7, 11*" B "(sp)\n"
        " " S " t3, 12*" B "(sp)\n " S " t4, 13*" B "(sp)\n " S " t5, 14*" B "(sp)\n " S " t6, 15*" B "(sp)\n"
        " call on_tick\n"
        " " L " ra, 0*" B "(sp)\n " L " a0, 1*" B "(sp)\n " L " a1, 2*" B "(sp)\n " L " a2, 3*" B "(sp)\n"
        " " L " a3, 4*" B "(sp)\n " L " a4, 5*" B "(sp)\n " L " a5, 6*" B "(sp)\n " L " t0, 7*" B "(sp)\n"
        " " L " t1, 8*" B "(sp)\n " L " t2, 9*" B "(sp)\n " L " a6, 10*" B "(sp)\n " L " a7, 11*" B "(sp)\n"
        " " L " t3, 12*" B "(sp)\n " L " t4, 13*" B "(sp)\n " L " t5, 14*" B "(sp)\n " L " t6, 15*" B "(sp)\n"
        " addi sp, sp, 160\n csrrw sp, mscratch, sp\n mret\n.size on_trap, . - on_trap\n");

void __attribute__((noinline)) note(volatile char *place, unsigned value) { place[value & 7] = (char)value; }

void __attribute__((noinline)) on_tick(void)
{
    volatile char room[48];
    note(room, ++ticks);
    MTIMECMP_HIGH = ~0u;
    MTIMECMP = MTIME + PERIOD;
    MTIMECMP_HIGH = 0;
}

unsigned __attribute__((noinline)) fib(unsigned n)
{
    if (n < 2)
        return n;
    return fib(n - 1) + fib(n - 2);
}

unsigned __attribute__((noinline)) scratch(unsigned size)
{
    volatile char *room = __builtin_alloca(size);
    note(room, size);
    return (unsigned)room[size & 7];
}

unsigned __attribute__((noinline)) big(unsigned value)
{
    volatile char room[5000];
    note(room, value);
    return (unsigned)room[value & 7] + fib(3);
}

void task_a(void)
{
    for (unsigned round = 0;; round++) {
        total += fib(4 + (round & 1));
        switch_stack(&a_sp, &b_sp);
    }
}

void task_b(void)
{
    for (unsigned round = 0;; round++) {
        total += scratch(32 + 16 * (round & 15));
        switch_stack(&b_sp, &main_sp);
    }
}

static unsigned long ready(unsigned long *top, void (*task)(void))
{
    unsigned long *frame = top - 64 / sizeof *top;
    frame[0] = (unsigned long)task;
    return (unsigned long)frame;
}

int main(void)
{
    a_sp = ready(task_a_stack + 200, task_a);
    b_sp = ready(task_b_stack + 300, task_b);
    __asm__ volatile("csrw mscratch, %0" ::"r"(irq_stack + 160));
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    MTIMECMP_HIGH = 0;
    MTIMECMP = MTIME + PERIOD;
    __asm__ volatile("csrs mie, %0\n csrsi mstatus, 8" ::"r"(0x80UL));
    for (unsigned round = 0; round < 1000; round++) {
        total += big(round) + fib(6 + (round & 3));
        switch_stack(&main_sp, &a_sp);
    }
    return 0;
}
