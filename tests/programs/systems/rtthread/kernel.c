/* A small kernel with the structures of RT-Thread (include/rtdef.h, v4), whose functions have its names: a switch, also
 * that of an interrupt, is a return from a trap to the frame of another thread.
 */
#include "notes.h"
#include "tasks.h"
#include <stdint.h>

#define THREADS 8
#define RT_NAME_MAX 12
#define FRAME_WORDS 34 /* mepc, x1, x3 to x31 each at its number, mstatus at 32 */

typedef struct rt_list_node {
    struct rt_list_node *next, *prev;
} rt_list_t;

struct rt_object {
    char name[RT_NAME_MAX];
    uint8_t type, flag;
    rt_list_t list;
};

struct rt_object_information {
    int type;
    rt_list_t object_list;
    size_t object_size;
};

struct rt_thread {
    char name[RT_NAME_MAX]; /* these four: struct rt_object */
    uint8_t type, flags;
    rt_list_t list;
    rt_list_t tlist;
    void *sp, *entry, *parameter, *stack_addr;
    uint32_t stack_size;
    int error;
    uint8_t stat, current_priority, init_priority;
    uint32_t number_mask;
    word init_tick, remaining_tick, user_data;
};
typedef struct rt_thread *rt_thread_t;

static struct rt_object_information rt_object_container[1] = {
    {1, {&rt_object_container[0].object_list, &rt_object_container[0].object_list}, sizeof(struct rt_thread)}};
struct rt_thread *rt_current_thread;
volatile word rt_thread_switch_interrupt_flag, rt_interrupt_nest;
word *volatile rt_interrupt_from_thread, *volatile rt_interrupt_to_thread; /* where their sp is */

static struct rt_thread threads[THREADS], idle_thread;
static word stacks[THREADS + 1][WORDS] __attribute__((aligned(16)));
static word created;

void rt_hw_trap_entry(void);
void rt_hw_context_switch_to(word to);

static void rt_thread_suspended_hook(struct rt_thread *to)
{
    note(NOTE_SWITCHED_IN, to, to->user_data, to->name);
}

APART void rt_hw_context_switch_interrupt(word *from, word *to)
{
    if (!rt_thread_switch_interrupt_flag)
        rt_interrupt_from_thread = from;
    rt_interrupt_to_thread = to;
    rt_thread_switch_interrupt_flag = 1;
}

APART void rt_scheduler_stack_check(struct rt_thread *thread)
{
    if (*(word *)thread->stack_addr == STACK_END_MAGIC)
        return;
    note(NOTE_OVERFLOWED, thread, thread->user_data, thread->name);
    for (;;)
        ;
}

/* In a trap, with interrupts off. */
APART void rt_schedule(void)
{
    struct rt_thread *from = rt_current_thread, *to = slot_next(0);
    rt_scheduler_stack_check(from);
    if (to == from)
        return;
    rt_current_thread = to;
    rt_thread_suspended_hook(to);
    rt_hw_context_switch_interrupt((word *)&from->sp, (word *)&to->sp);
}

APART void rt_thread_yield(void)
{
    *(volatile uint32_t *)0x2000000UL = 1;
    __asm__ volatile("csrsi mstatus, 8\nnop\nj 1f\n1:nop" ::: "memory");
}

APART void rt_thread_delay(word ticks)
{
    interrupts_off();
    slot_sleep(rt_current_thread, ticks);
    rt_thread_yield();
}

static void forget(struct rt_thread *thread)
{
    thread->list.prev->next = thread->list.next;
    thread->list.next->prev = thread->list.prev;
    slot_free(thread);
    note(NOTE_DELETED, thread, thread->user_data, thread->name);
    thread->entry = 0;
}

APART void rt_thread_delete(struct rt_thread *thread)
{
    interrupts_off();
    forget(thread);
    interrupts_on();
}

APART void rt_thread_exit(void)
{
    interrupts_off();
    forget(rt_current_thread);
    rt_thread_yield();
}

static void named(struct rt_thread *thread, word *stack, const char *name, void *entry, void *parameter, int priority)
{
    rt_list_t *head = &rt_object_container[0].object_list;
    for (int i = 0; i < RT_NAME_MAX; i++)
        thread->name[i] = *name ? *name++ : 0;
    thread->type = 1;
    thread->list = (rt_list_t){head->next, head};
    head->next = head->next->prev = &thread->list;
    thread->entry = entry;
    thread->parameter = parameter;
    thread->stack_addr = stack;
    thread->stack_size = WORDS * sizeof(word);
    thread->current_priority = thread->init_priority = 31 - priority;
    thread->user_data = ++created;
    *stack = STACK_END_MAGIC;
    word *frame = stack + WORDS - FRAME_WORDS;
    frame[0] = (word)entry;
    frame[1] = (word)rt_thread_exit;
    frame[10] = (word)parameter;
    frame[32] = 0x1880;
    __asm__ volatile("mv %0, gp" : "=r"(frame[3]));
    thread->sp = frame;
    slot_take(thread, priority, -1);
    note(NOTE_CREATED, thread, thread->user_data, thread->name);
}

APART rt_thread_t rt_thread_create(const char *name, void *entry, void *parameter, int priority)
{
    interrupts_off();
    int i = 0;
    while (threads[i].entry)
        i++;
    named(&threads[i], stacks[i], name, entry, parameter, priority);
    interrupts_on();
    return &threads[i];
}

static void rt_thread_idle_entry(void *unused)
{
    for (;;)
        __asm__ volatile("wfi");
}

APART void handle_trap(word cause)
{
    rt_interrupt_nest++;
    if ((cause & 0xff) == 3) {
        *(volatile uint32_t *)0x2000000UL = 0;
    } else {
        timer_next();
        slots_tick();
    }
    rt_schedule();
    rt_interrupt_nest--;
}

void system_begin(int hart)
{
    named(&idle_thread, stacks[THREADS], "tidle0", rt_thread_idle_entry, 0, IDLE);
    program_begin();
    interrupts_off();
    __asm__ volatile("csrw mtvec, %0" ::"r"(rt_hw_trap_entry));
    timer_next();
    __asm__ volatile("csrs mie, %0" ::"r"(0x88));
    rt_current_thread = slot_next(0);
    rt_thread_suspended_hook(rt_current_thread);
    rt_hw_context_switch_to((word)&rt_current_thread->sp);
}

void *task_begin(void (*entry)(void *), const char *name, void *argument, int priority)
{
    return rt_thread_create(name, entry, argument, priority);
}
void task_sleep(word ticks) { rt_thread_delay(ticks); }
void task_yield(void) { rt_thread_yield(); }
void task_end(void) { rt_thread_exit(); }
int task_stop(void *task) { rt_thread_delete(task); return 1; }
