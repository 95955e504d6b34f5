/* A small kernel with the structures of Zephyr (include/zephyr/kernel/thread.h, kernel_structs.h), whose functions have
 * its names: a switch is z_riscv_switch, which begins in one thread and ends in another; interrupts have their own stack.
 */
#include "notes.h"
#include "tasks.h"
#include <stdint.h>

#define THREADS 8

typedef struct _dnode {
    struct _dnode *next, *prev;
} sys_dnode_t;

struct _thread_base {
    sys_dnode_t qnode_dlist;
    void *pended_on;
    uint8_t user_options, thread_state;
    int8_t prio;
    uint8_t sched_locked;
    uint32_t order_key;
    uint8_t is_idle, cpu;
    void *swap_data;
};

struct _callee_saved {
    word sp, ra, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11;
};

struct __thread_entry {
    void (*pEntry)(void *, void *, void *);
    void *parameter1, *parameter2, *parameter3;
};

struct _thread_stack_info {
    uintptr_t start;
    size_t size, delta;
};

struct k_thread {
    struct _thread_base base;
    struct _callee_saved callee_saved;
    void *init_data;
    struct __thread_entry entry;
    struct k_thread *next_thread;
    char name[32];
    struct _thread_stack_info stack_info;
    void *switch_handle;
};
const word callee_saved_offset = offsetof(struct k_thread, callee_saved);

struct _cpu {
    uint32_t nested;
    char *irq_stack;
    struct k_thread *current, *idle_thread;
    uint8_t id;
};

struct z_kernel {
    struct _cpu cpus[HARTS];
    struct k_thread *threads;
} _kernel;

static struct k_thread threads[THREADS], idle_threads[HARTS], z_dummy_threads[HARTS];
static word stacks[THREADS + HARTS][WORDS] __attribute__((aligned(16)));
static word irq_stacks[HARTS][WORDS] __attribute__((aligned(16)));
static word created;
volatile word nested_interrupts;

void z_riscv_switch(struct k_thread *next, struct k_thread *old);
void z_riscv_thread_start(void);
void _isr_wrapper(void);

static APART void z_thread_mark_switched_in(struct k_thread *thread)
{
    note(NOTE_SWITCHED_IN, thread, thread->base.order_key, thread->name);
}

APART void k_sys_fatal_error_handler(struct k_thread *thread)
{
    note(NOTE_OVERFLOWED, thread, thread->base.order_key, thread->name);
    for (;;)
        ;
}

static APART void z_check_stack_sentinel(struct k_thread *thread)
{
    if (thread->stack_info.start && *(uint32_t *)thread->stack_info.start != STACK_END_MAGIC)
        k_sys_fatal_error_handler(thread);
}

/* The thread to go on with on this hart; it is current from here on. */
APART struct k_thread *z_get_next_switch_handle(struct k_thread *old)
{
    int hart = hart_number();
    z_check_stack_sentinel(old);
    struct k_thread *next = slot_next(hart);
    if (next != old) {
        next->base.cpu = hart;
        _kernel.cpus[hart].current = next;
        z_thread_mark_switched_in(next);
    }
    return next;
}

static APART void do_swap(void)
{
    struct k_thread *old = _kernel.cpus[hart_number()].current, *next = z_get_next_switch_handle(old);
    if (next != old)
        z_riscv_switch(next, old);
}

void z_reschedule_begin(void)
{
    interrupts_off();
    lock();
}

void z_reschedule_end(void)
{
    unlock();
    interrupts_on();
}

APART void k_yield(void)
{
    z_reschedule_begin();
    do_swap();
    z_reschedule_end();
}

APART void k_sleep(word ticks)
{
    z_reschedule_begin();
    slot_sleep(_kernel.cpus[hart_number()].current, ticks);
    do_swap();
    z_reschedule_end();
}

static void forget(struct k_thread *thread)
{
    struct k_thread **at = &_kernel.threads;
    while (*at != thread)
        at = &(*at)->next_thread;
    *at = thread->next_thread;
    slot_free(thread);
    note(NOTE_DELETED, thread, thread->base.order_key, thread->name);
    thread->entry.pEntry = 0;
}

APART int k_thread_abort(struct k_thread *thread)
{
    z_reschedule_begin();
    int elsewhere = slot_runs_elsewhere(thread, hart_number());
    if (!elsewhere) {
        forget(thread);
        if (thread == _kernel.cpus[hart_number()].current)
            do_swap();
    }
    z_reschedule_end();
    return !elsewhere;
}

/* Where all threads begin, with the lock. */
void z_thread_entry(struct k_thread *thread)
{
    z_reschedule_end();
    thread->entry.pEntry(thread->entry.parameter1, thread->entry.parameter2, thread->entry.parameter3);
    k_thread_abort(thread);
}

static void named(struct k_thread *thread, word *stack, const char *name, int priority)
{
    thread->next_thread = _kernel.threads;
    _kernel.threads = thread;
    thread->base.prio = priority;
    thread->base.order_key = ++created;
    for (size_t i = 0; i < sizeof thread->name; i++)
        thread->name[i] = *name ? *name++ : 0;
    thread->stack_info = (struct _thread_stack_info){(uintptr_t)stack, WORDS * sizeof(word), 0};
    *(uint32_t *)stack = STACK_END_MAGIC;
    thread->callee_saved.sp = (word)(stack + WORDS);
    thread->callee_saved.ra = (word)z_riscv_thread_start;
    thread->callee_saved.s0 = (word)thread;
    thread->switch_handle = thread;
    note(NOTE_CREATED, thread, thread->base.order_key, thread->name);
}

APART struct k_thread *k_thread_create(
    void (*entry)(void *, void *, void *), const char *name, void *parameter, int priority)
{
    int i = 0;
    while (threads[i].entry.pEntry)
        i++;
    threads[i].entry = (struct __thread_entry){entry, parameter, 0, 0};
    named(&threads[i], stacks[i], name, priority);
    slot_take(&threads[i], priority, -1);
    return &threads[i];
}

/* Where an interrupt ends that interrupted a thread, on the stack of the thread: another one may go on. */
APART void z_riscv_reschedule(void)
{
    lock();
    do_swap();
    unlock();
}

static void idle(void *unused1, void *unused2, void *unused3)
{
    for (;;)
        __asm__ volatile("wfi");
}

/* The interrupts of a hart, on its own stack for them; with NESTED another one may come while the tick is served. */
APART void z_riscv_interrupt(word cause)
{
    int hart = hart_number();
    volatile uint32_t *msip = (volatile uint32_t *)(0x2000000UL + 4 * hart);
    if ((cause & 0xff) == 3) {
        *msip = 0;
        nested_interrupts += _kernel.cpus[hart].nested > 1;
        return;
    }
    timer_next();
#ifdef NESTED
    *msip = 1;
    __asm__ volatile("csrsi mstatus, 8\nnop\nj 1f\n1:nop\nj 2f\n2:csrci mstatus, 8" ::: "memory");
#endif
    lock();
    if (hart == 0)
        slots_tick();
    unlock();
}

void system_begin(int hart)
{
    static volatile int begun;
    struct _cpu *cpu = &_kernel.cpus[hart];
    cpu->id = hart;
    cpu->irq_stack = (char *)(irq_stacks[hart] + WORDS);
    cpu->current = &z_dummy_threads[hart];
    cpu->idle_thread = &idle_threads[hart];
    while (hart && !begun)
        ;
    z_reschedule_begin();
    idle_threads[hart].entry = (struct __thread_entry){idle, 0, 0, 0};
    named(&idle_threads[hart], stacks[THREADS + hart], hart ? "idle 01" : "idle 00", IDLE);
    idle_threads[hart].base.is_idle = 1;
    slot_take(&idle_threads[hart], IDLE, hart);
    z_reschedule_end();
    if (hart == 0)
        program_begin();
    begun = 1;
    interrupts_off();
    __asm__ volatile("csrw mtvec, %0" ::"r"(_isr_wrapper));
    __asm__ volatile("csrw mscratch, %0" ::"r"(cpu));
    timer_next();
    __asm__ volatile("csrs mie, %0" ::"r"(0x88));
    lock();
    do_swap();
    for (;;)
        ;
}

void *task_begin(void (*entry)(void *), const char *name, void *argument, int priority)
{
    z_reschedule_begin();
    void *thread = k_thread_create((void (*)(void *, void *, void *))(void *)entry, name, argument, priority);
    z_reschedule_end();
    return thread;
}
void task_sleep(word ticks) { k_sleep(ticks); }
void task_yield(void) { k_yield(); }
void task_end(void) { k_thread_abort(_kernel.cpus[hart_number()].current); }
int task_stop(void *task) { return k_thread_abort(task); }
