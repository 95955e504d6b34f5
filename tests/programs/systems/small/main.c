/* The program of the small kernels: two tasks of one name that take turns, a boss whose tasks end by themselves or are
 * ended, whose memory the next ones get. With OVERFLOW one task's stack is too small.
 */
#include "tasks.h"

#ifndef ROUNDS
#define ROUNDS 5
#endif

volatile word sum, ended, turns[2];

/* The end: nothing more is noted. */
static APART void finished(void)
{
    __asm__ volatile("csrci mstatus, 8");
    for (;;)
        ;
}

static APART word mixed(word value)
{
    for (int i = 0; i < 16; i++)
        value = value * 1103515245 + 12345;
    return value;
}

static APART word nested(word depth, word value)
{
    return depth ? nested(depth - 1, mixed(value)) + 1 : mixed(value);
}

static APART void work(word which)
{
    for (int i = 0; i < 3; i++)
        sum += nested(3, which + i);
    turns[which]++;
}

static void worker(void *which)
{
    for (word n = 1;; n++) {
        work((word)which);
        task_yield();
        if (n % 2 == 0)
            task_sleep(3);
    }
}

static void child(void *value)
{
    sum += nested(4, (word)value);
    ended++;
    task_end();
}

static void prey(void *value)
{
    for (;;)
        sum += nested(1, (word)value);
}

static APART word deeper(word depth, word value)
{
    volatile word kept[8];
    for (int i = 0; i < 8; i++)
        kept[i] = value;
    return depth ? deeper(depth - 1, mixed(value)) + kept[value & 7] : mixed(value);
}

static void greedy(void *unused)
{
    for (word depth = 1;; depth += 5) {
        sum += deeper(depth, 1);
        task_sleep(1);
    }
}

static void boss(void *unused)
{
    for (word n = 0; n < ROUNDS; n++) {
        task_begin(child, "child", (void *)n, 1);
        task_sleep(4);
        void *other = task_begin(prey, n & 1 ? "victim" : "prey", (void *)n, 1);
        task_sleep(3);
        while (!task_stop(other))
            task_sleep(1);
    }
    finished();
}

void program_begin(void)
{
    task_begin(worker, "worker", (void *)0, 1);
    task_begin(worker, "worker", (void *)1, 1);
#ifdef OVERFLOW
    task_begin(greedy, "greedy", 0, 2);
#endif
    task_begin(boss, "boss", 0, 2);
}

int main(int hart)
{
#if HARTS == 1
    hart = 0; /* that start-up says nothing */
#endif
    system_begin(hart);
}
