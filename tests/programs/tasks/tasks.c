/* Three tasks.  MRET: a timer takes turns, and so does an ecall; the timer's handler is interrupted itself.  Else by ret.
   AFTER: `came` is where so many calls of yield have come. */
typedef unsigned long word;
#define MTIME (*(volatile word *)0x200bff8)
#define MTIMECMP (*(volatile word *)0x2004000)
#define MSIP (*(volatile int *)0x2000000)
#define TASKS 3
typedef struct { word ra, sp, s0, s1; } context;
void swap_to(context *save, context *load);
void on_trap(void);
volatile word count, ticks, got;
word stacks[TASKS][512] __attribute__((aligned(16)));
word waiting[TASKS];
context contexts[TASKS];
int now;

__attribute__((noinline)) int next_task(void) { return now == TASKS - 1 ? 0 : now + 1; }

#ifdef AFTER
static volatile int yields;
__attribute__((noinline)) void came(void) { __asm__ volatile("" ::: "memory"); }
#define COUNTED if ((yields = yields + 1) == AFTER) came()
#else
#define COUNTED
#endif

#ifdef MRET
__attribute__((noinline)) void tick(void) { ticks = ticks + 1; }

__attribute__((noinline)) word turn(word sp)
{
    waiting[now] = sp;
    now = next_task();
    return waiting[now];
}

__attribute__((noinline)) word timer(word sp)
{
    MTIMECMP = MTIME + 700;
    MSIP = 1;
    __asm__ volatile("csrsi mstatus, 8\nnop\nnop\ncsrci mstatus, 8" ::: "memory");
    tick();
    return turn(sp);
}

word schedule(word sp)
{
    word cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    if (cause == 11) {
        *(word *)sp += 4;
        return turn(sp);
    }
    if ((cause & 0xff) == 7)
        return timer(sp);
    MSIP = 0;
    tick();
    return sp;
}

__attribute__((noinline)) void yield(void)
{
    COUNTED;
    count = count + 1; /* gdb cannot step over a function whose first instruction traps: docs/reverse.md */
    __asm__ volatile("ecall" ::: "memory");
}
#else
__attribute__((noinline)) void yield(void)
{
    COUNTED;
    context *mine = &contexts[now];
    now = next_task();
    swap_to(mine, &contexts[now]);
}
#endif

__attribute__((noinline)) int work(int n)
{
    count += n;
    return n < 2 ? n : work(n - 1) + work(n - 2);
}

__attribute__((noinline)) int receive(int n)
{
    int sum = work(n);
    yield();
    sum += count & 3;
    return sum;
}

__attribute__((noinline)) int deep(int n)
{
    if (n)
        return deep(n - 1) + receive(1);
    return receive(2);
}

__attribute__((noinline)) void first(void)
{
    for (;;) {
        int v = receive(3);
        got += v;
        got += deep(2);
    }
}

__attribute__((noinline)) void second(void)
{
    for (;;) {
        got += work(4);
        got += receive(2);
        yield();
    }
}

int main(void)
{
    void (*entries[TASKS])(void) = {0, first, second};
    for (int i = 1; i < TASKS; i++) {
        word *sp = &stacks[i][512 - 34];
#ifdef MRET
        sp[0] = (word)entries[i];
        sp[32] = 0x1880;
        waiting[i] = (word)sp;
#else
        contexts[i].ra = (word)entries[i];
        contexts[i].sp = (word)sp;
#endif
    }
#ifdef MRET
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    MTIMECMP = MTIME + 700;
    __asm__ volatile("csrw mie, %0\ncsrsi mstatus, 8" ::"r"(0x88));
#endif
    for (;;) {
        got += deep(1);
        got += work(3);
    }
}
