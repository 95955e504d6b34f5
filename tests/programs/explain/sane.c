/* Programs that look like faults and are none, each a CASE: what `trace explain` must not mistake. */
#include "base.h"

static volatile unsigned events;
static volatile unsigned done;
unsigned result;
static unsigned char bytes[6000];

#if CASE == 1 /* a trap handler that returns behind the instruction, 300 times */
static void HANDLER on_trap(void) { step_over_trap(); }
static APART void ask(unsigned n)
{
    __asm__ volatile(".option push\n.option norvc\necall\n.option pop" ::: "memory");
    result += n;
}
int main(void)
{
    handle_traps(on_trap);
    for (unsigned i = 0; i < 300; i++)
        ask(i);
    return 0;
}
#elif CASE == 2 /* delays by a clock, one of which is under way at the end */
static APART void wait(unsigned ticks)
{
    uint64_t until = MTIME + ticks;
    while (MTIME < until) {
    }
}
int main(void)
{
    for (;;) {
        result++;
        wait(900);
    }
}
#elif CASE == 3 /* an idle loop of wfi, woken by a timer */
static void HANDLER on_trap(void)
{
    events++;
    MTIMECMP = MTIME + 300;
}
int main(void)
{
    handle_traps(on_trap);
    MTIMECMP = MTIME + 300;
    enable(TIMER);
    for (;;)
        __asm__ volatile("wfi");
}
#elif CASE == 4 /* nearly all work is done in the handler, and the program sleeps */
static void HANDLER on_trap(void)
{
    for (volatile int i = 0; i < 40; i++) {
    }
    MTIMECMP = MTIME + 30;
}
int main(void)
{
    handle_traps(on_trap);
    MTIMECMP = MTIME + 30;
    enable(TIMER);
    for (;;) {
        __asm__ volatile("wfi");
        result++;
    }
}
#elif CASE == 5 /* a hash, whose branch depends on a counter alone */
static APART unsigned hash(const unsigned char *at, unsigned count)
{
    unsigned sum = 0;
    while (count--)
        sum = sum * 31 + *at++;
    return sum;
}
int main(void)
{
    for (;;)
        result = hash(bytes, sizeof bytes);
}
#elif CASE == 6 /* a long walk along a list, not for the first time */
static struct node {
    struct node *next;
} nodes[900];
static APART unsigned count(const struct node *node)
{
    unsigned found = 0;
    for (; node; node = node->next)
        found++;
    return found;
}
int main(void)
{
    for (unsigned i = 0; i + 1 < 900; i++)
        nodes[i].next = &nodes[i + 1];
    for (;;)
        result = count(nodes);
}
#elif CASE == 7 /* jumps out of nested calls */
static void *place[5];
static APART void deep(int left)
{
    if (left == 0)
        __builtin_longjmp(place, 1);
    deep(left - 1);
    result++;
}
int main(void)
{
    for (volatile int i = 0; i < 9; i++) {
        if (__builtin_setjmp(place) == 0)
            deep(3 + i);
    }
    return 0;
}
#elif CASE == 8 /* a recursion that is deep, and comes back */
static APART unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
int main(void)
{
    for (;;)
        result = ackermann(2, 60);
}
#elif CASE == 9 /* large frames that fit */
static APART unsigned frame(int left)
{
    volatile unsigned values[6000];
    values[left] = left;
    return left ? frame(left - 1) + values[left] : values[0];
}
int main(void)
{
    for (;;)
        result = frame(12);
}
#elif CASE == 10 /* one loop that fills memory for the first time, and is cut in the middle */
int main(void)
{
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = 5;
    return bytes[7];
}
#elif CASE == 11 /* a main loop that waits for events of a timer, and is in the middle of a wait */
static void HANDLER on_trap(void)
{
    events++;
    MTIMECMP = MTIME + 700;
}
static APART void handle(unsigned n) { result += n; }
int main(void)
{
    unsigned seen = 0;
    handle_traps(on_trap);
    MTIMECMP = MTIME + 30;
    enable(TIMER);
    for (;;) {
        while (events == seen) {
        }
        seen = events;
        handle(seen);
    }
}
#elif CASE == 12 /* nothing to do but in handlers: an empty main loop */
static void HANDLER on_trap(void)
{
    events++;
    MTIMECMP = MTIME + 500;
}
int main(void)
{
    handle_traps(on_trap);
    MTIMECMP = MTIME + 30;
    enable(TIMER);
    for (;;) {
    }
}
#elif CASE == 13 /* a wait with a time-out, under way at the end */
static APART int wait(unsigned tries)
{
    while (!done && tries)
        tries--;
    return done;
}
int main(void)
{
    for (;;)
        result = wait(4000);
}
#elif CASE == 14 /* a main loop whose only branch tests what never changes: how the program was built, say */
static APART void step(unsigned n) { result = result * 31 + n; }
int main(void)
{
    unsigned shown = events;
    for (;;) {
        step(done);
        if (shown)
            step(1);
        bytes[result & 15]++;
    }
}
#endif
