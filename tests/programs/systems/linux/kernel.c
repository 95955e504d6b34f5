/* A small kernel with the structures of Linux (include/linux/sched.h), whose functions have its names: a switch is
 * __switch_to, which begins in one task and ends in another; tp is the current task.
 */
#include "notes.h"
#include "tasks.h"
#include <stdint.h>

#define TASKS 8

struct list_head {
    struct list_head *next, *prev;
};

struct thread_info {
    word flags;
    int preempt_count;
    long kernel_sp, user_sp;
    int cpu;
};

struct thread_struct {
    word ra, sp, s[12];
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    void *stack;
    int on_cpu, prio;
    struct list_head tasks;
    int pid, tgid;
    struct task_struct *real_parent, *group_leader;
    char comm[16];
    struct thread_struct thread;
};
const word thread_offset = offsetof(struct task_struct, thread);

struct rq {
    struct task_struct *curr, *idle;
    word nr_switches;
} runqueues[HARTS];

struct task_struct init_task = {.comm = "swapper/0", .tasks = {&init_task.tasks, &init_task.tasks}};
static struct task_struct others[TASKS + HARTS];
static word stacks[TASKS + 2 * HARTS][WORDS] __attribute__((aligned(16)));
static int pids;

register struct task_struct *current __asm__("tp");
struct task_struct *__switch_to(struct task_struct *prev, struct task_struct *next);
void ret_from_fork(void);
void handle_exception(void);

static APART void trace_sched_switch(struct task_struct *next)
{
    note(NOTE_SWITCHED_IN, next, next->pid, next->comm);
}

APART void panic(struct task_struct *task)
{
    note(NOTE_OVERFLOWED, task, task->pid, task->comm);
    for (;;)
        ;
}

static void local_irq_disable_and_lock(void)
{
    interrupts_off();
    lock();
}

/* What the next task begins with: the lock of the one before. */
APART void schedule_tail(struct task_struct *prev)
{
    prev->on_cpu = 0;
    unlock();
    interrupts_on();
}

static APART void context_switch(struct rq *rq, struct task_struct *prev, struct task_struct *next)
{
    rq->curr = next;
    rq->nr_switches++;
    next->on_cpu = 1;
    next->thread_info.cpu = hart_number();
    trace_sched_switch(next);
    prev = __switch_to(prev, next);
    prev->on_cpu = 0;
}

/* With the lock, interrupts off. */
static APART void __schedule(void)
{
    int hart = hart_number();
    struct task_struct *prev = current;
    if (prev->stack && *(word *)prev->stack != STACK_END_MAGIC)
        panic(prev);
    struct task_struct *next = slot_next(hart);
    if (next != prev)
        context_switch(&runqueues[hart], prev, next);
}

APART void schedule(void)
{
    local_irq_disable_and_lock();
    __schedule();
    unlock();
    interrupts_on();
}

APART void schedule_timeout(word ticks)
{
    local_irq_disable_and_lock();
    slot_sleep(current, ticks);
    __schedule();
    unlock();
    interrupts_on();
}

static void release_task(struct task_struct *task)
{
    task->tasks.prev->next = task->tasks.next;
    task->tasks.next->prev = task->tasks.prev;
    slot_free(task);
    note(NOTE_DELETED, task, task->pid, task->comm);
    task->stack = 0;
}

APART void do_exit(void)
{
    local_irq_disable_and_lock();
    release_task(current);
    __schedule();
}

APART int do_send_sig_info(struct task_struct *task)
{
    local_irq_disable_and_lock();
    int elsewhere = slot_runs_elsewhere(task, hart_number());
    if (!elsewhere)
        release_task(task);
    unlock();
    interrupts_on();
    return !elsewhere;
}

static void begun(struct task_struct *task, word *stack, const char *name, int pid)
{
    *stack = STACK_END_MAGIC;
    task->stack = stack;
    task->pid = task->tgid = pid;
    for (int i = 0; i < 16; i++)
        task->comm[i] = *name ? *name++ : 0;
    task->thread.sp = (word)(stack + WORDS);
    task->thread.ra = (word)ret_from_fork;
    note(NOTE_CREATED, task, task->pid, task->comm);
}

APART struct task_struct *kernel_clone(void (*function)(void *), const char *name, void *argument, int priority)
{
    local_irq_disable_and_lock();
    int i = 0;
    while (others[i].stack)
        i++;
    struct task_struct *task = &others[i];
    begun(task, stacks[HARTS + i], name, ++pids);
    task->thread.s[0] = (word)function;
    task->thread.s[1] = (word)argument;
    task->tasks = (struct list_head){&init_task.tasks, init_task.tasks.prev};
    init_task.tasks.prev->next = &task->tasks;
    init_task.tasks.prev = &task->tasks;
    slot_take(task, priority, -1);
    unlock();
    interrupts_on();
    return task;
}

APART void do_irq(word cause)
{
    timer_next();
    lock();
    if (hart_number() == 0)
        slots_tick();
    __schedule();
    unlock();
}

static APART void do_idle(void)
{
    for (;;)
        __asm__ volatile("wfi");
}

void system_begin(int hart)
{
    static volatile int started;
    while (hart && !started)
        ;
    struct task_struct *idle = &init_task;
    if (hart == 0) {
        begun(idle, stacks[0], "swapper/0", 0);
    } else {
        idle = &others[TASKS + hart - 1];
        begun(idle, stacks[TASKS + HARTS + hart - 1], "swapper/1", 0);
    }
    current = idle;
    runqueues[hart].curr = runqueues[hart].idle = idle;
    lock();
    slot_take(idle, IDLE, hart);
    slot_next(hart);
    unlock();
    if (hart == 0)
        program_begin();
    started = 1;
    __asm__ volatile("csrw mtvec, %0" ::"r"(handle_exception));
    timer_next();
    __asm__ volatile("csrs mie, %0\ncsrsi mstatus, 8" ::"r"(0x80));
    do_idle();
}

void *task_begin(void (*entry)(void *), const char *name, void *argument, int priority)
{
    return kernel_clone(entry, name, argument, priority);
}
void task_sleep(word ticks) { schedule_timeout(ticks); }
void task_yield(void) { schedule(); }
void task_end(void) { do_exit(); }
int task_stop(void *task) { return do_send_sig_info(task); }
