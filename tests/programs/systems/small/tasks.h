/* What the small kernels of this folder offer to their program (small/main.c), and what they get from it. */
#ifndef TASKS_H
#define TASKS_H

#include <stddef.h>

typedef unsigned long word;
#define APART __attribute__((noinline))
#ifndef HARTS
#define HARTS 1
#endif
#define IDLE 0  /* the lowest priority */
#define WORDS 256 /* of each stack */
#define STACK_END_MAGIC 0x57ac6e9d
#define TICK 2500 /* instructions: mtime counts them */

/* A kernel's: each calls these what they are called there. */
void *task_begin(void (*entry)(void *), const char *name, void *argument, int priority);
void task_sleep(word ticks);
void task_yield(void);
void task_end(void);
int task_stop(void *task); /* 0: another hart runs it */
void *task_self(int hart);
void system_begin(int hart); /* does not return */

/* The program's. */
void program_begin(void);

/* scheduling.c: which task is next. The kernel holds the lock, with interrupts off. */
void *slot_take(void *task, int priority, int hart); /* hart -1: any; returns the task */
void slot_sleep(void *task, word ticks);
void slot_free(void *task);
int slot_runs_elsewhere(void *task, int hart);
void *slot_next(int hart);
void slots_tick(void);
void lock(void);
void unlock(void);

static inline int hart_number(void)
{
    word hart;
    __asm__ volatile("csrr %0, mhartid" : "=r"(hart));
    return (int)hart;
}
static inline void interrupts_off(void) { __asm__ volatile("csrci mstatus, 8" ::: "memory"); }
static inline void interrupts_on(void) { __asm__ volatile("csrsi mstatus, 8" ::: "memory"); }

void timer_next(void); /* the next tick of this hart */

#endif
