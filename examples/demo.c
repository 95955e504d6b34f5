/* What `rvtrace demo` traces: recursion, function pointers, a switch with a jump table, and a timer interrupt. */
#include <stdint.h>

#define CLINT 0x02000000UL
#define MTIMECMP (*(volatile uint64_t *)(CLINT + 0x4000))
#define MTIME (*(volatile uint64_t *)(CLINT + 0xbff8))

volatile unsigned ticks;
volatile int result;

static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static int mul(int a, int b) { return a * b; }

typedef int (*operation)(int, int);
static const operation operations[] = {add, sub, mul};

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static int classify(int c)
{
    switch (c & 7) { /* dense enough for a jump table */
    case 0: return '0';
    case 1: return 'a';
    case 2: return ' ' + c;
    case 3: return c << 2;
    case 4: return -c;
    case 5: return c ^ 0x55;
    case 6: return c / 3;
    default: return 0;
    }
}

void __attribute__((interrupt, aligned(4))) on_trap(void)
{
    ticks++;
    MTIMECMP = MTIME + 500;
}

static void start_timer(void)
{
    MTIMECMP = MTIME + 500;
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
    __asm__ volatile("csrsi mstatus, 8");
}

int finish(int value)
{
    result = value;
    return value;
}

int main(void)
{
    int sum = fib(7);
    start_timer();
    for (int i = 0; i < 40; i++) {
        sum = operations[i % 3](sum, i) & 0xffff;
        sum += classify(sum);
    }
    return finish(sum);
}
