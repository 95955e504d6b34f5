/* Services behind ecall: a handler that dispatches through a table and returns behind the instruction. */
#include "base.h"

#define SERVICES 4

static int values[8];
static volatile unsigned calls, ticks;
static int put(int at, int value);
static int get(int at, int value);
static int add(int at, int value);
static int mean(int at, int value);
static int (*const table[SERVICES])(int, int) = {put, get, add, mean};
static volatile int service, argument, operand, result;

static APART int put(int at, int value)
{
    values[at & 7] = value;
    return 0;
}
static APART int get(int at, int value)
{
    return values[at & 7] + value;
}
static APART int add(int at, int value)
{
    values[at & 7] += value;
    return values[at & 7];
}
static APART int mean(int at, int value)
{
    return (values[at & 7] + value) / 2;
}

static void HANDLER on_trap(void)
{
    uintptr_t cause = trap_cause();
    if (is_interrupt(cause)) {
        ticks++;
        MTIMECMP = MTIME + 400;
        return;
    }
    if (cause != 11) {
        for (;;) {
        }
    }
    calls++;
    result = table[service](argument, operand);
    step_over_trap();
}

static APART int call(int number, int at, int value)
{
    service = number;
    argument = at;
    operand = value;
    __asm__ volatile(".option push\n.option norvc\necall\n.option pop" ::: "memory");
    return result;
}

int main(void)
{
    int sum = 0;
    handle_traps(on_trap);
    MTIMECMP = MTIME + 400;
    enable(TIMER);
    for (int i = 0; i < 150; i++) {
        call(0, i, i);
        call(2, i, 3);
        sum += call(i % SERVICES, i + 1, 2);
    }
    return sum & 1;
}
