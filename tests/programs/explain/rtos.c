/* Two tasks and an idle one under a timer that takes turns (../tasks/switch.S, MRET). FAULT: what one of the tasks does.
 *
 * 0 nothing wrong: one task makes words, the other waits until there is one; the idle task sleeps, or with BUSY it spins
 * 1 the writer stores through a null pointer: the handler of faults stays where it is
 * 2 the writer calls a function without end: its stack runs into what is below
 */
typedef unsigned long word;
#define MTIME (*(volatile word *)0x200bff8)
#define MTIMECMP (*(volatile word *)0x2004000)
#define TASKS 3
#define WORDS 262
#define APART __attribute__((noinline))

void on_trap(void);
word writer_stack[WORDS] __attribute__((aligned(16))), reader_stack[WORDS] __attribute__((aligned(16)));
static word waiting[TASKS];
static int now;
volatile word made, taken, sum, ticks;
word nowhere[4];

static APART void stuck(void)
{
    for (;;)
        ;
}

word schedule(word sp)
{
    word cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    if (cause == 11)
        *(word *)sp += 4;
    else if ((cause & 0xff) == 7 && (long)cause < 0)
        MTIMECMP = MTIME + 300;
    else
        stuck();
    ticks++;
    waiting[now] = sp;
    now = now == TASKS - 1 ? 0 : now + 1;
    return waiting[now];
}

static APART void yield(void)
{
    __asm__ volatile("nop\necall" ::: "memory");
}

static APART word mixed(word value)
{
    for (int i = 0; i < 16; i++)
        value = value * 25214903917 + 11;
    return value;
}

static APART word deeper(word value)
{
    volatile word kept[8];
    kept[value & 7] = value;
    return deeper(mixed(value)) + kept[value & 7];
}

static APART void writer(void)
{
    for (word n = 1;; n++) {
        word value = mixed(n);
#if FAULT == 1
        volatile word *at = n < 5 ? &nowhere[n & 3] : 0;
        *at = value;
#elif FAULT == 2
        if (n == 5)
            value = deeper(value);
#endif
        sum += value;
        made = n;
        yield();
    }
}

static APART void reader(void)
{
    for (;;) {
        while (taken == made)
            yield();
        taken++;
    }
}

int main(void)
{
    void (*entries[TASKS])(void) = {0, writer, reader};
    for (int i = 1; i < TASKS; i++) {
        word *sp = (i == 1 ? writer_stack : reader_stack) + WORDS - 34;
        sp[0] = (word)entries[i];
        sp[32] = 0x1880;
        waiting[i] = (word)sp;
    }
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    MTIMECMP = MTIME + 300;
    __asm__ volatile("csrw mie, %0\ncsrsi mstatus, 8" ::"r"(0x80));
    for (;;) {
#ifndef BUSY
        __asm__ volatile("wfi");
#endif
    }
}
