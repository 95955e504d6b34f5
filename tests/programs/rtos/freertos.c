/* A small system of tasks with the names, structures and lists of FreeRTOS, and a scheduler of its own.
   It logs its turns itself, where FreeRTOS calls traceTASK_SWITCHED_IN. */
#include <stddef.h>
#include <stdint.h>

typedef unsigned long word;
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef word StackType_t;

struct xLIST;
struct xLIST_ITEM {
    TickType_t xItemValue;
    struct xLIST_ITEM *pxNext, *pxPrevious;
    void *pvOwner;
    struct xLIST *pvContainer;
};
typedef struct xLIST_ITEM ListItem_t;
struct xMINI_LIST_ITEM {
    TickType_t xItemValue;
    struct xLIST_ITEM *pxNext, *pxPrevious;
};
typedef struct xLIST {
    volatile UBaseType_t uxNumberOfItems;
    ListItem_t *pxIndex;
    struct xMINI_LIST_ITEM xListEnd;
} List_t;

#define NAME 12
typedef struct tskTaskControlBlock {
    volatile StackType_t *pxTopOfStack; /* the first: the port knows that */
    ListItem_t xStateListItem, xEventListItem;
    UBaseType_t uxPriority;
    StackType_t *pxStack;
    char pcTaskName[NAME];
#ifndef NO_END
    StackType_t *pxEndOfStack;
#endif
#ifdef NUMBERED
    UBaseType_t uxTCBNumber, uxTaskNumber;
#endif
} tskTCB;
typedef tskTCB TCB_t;

#define PRIORITIES 4
static List_t pxReadyTasksLists[PRIORITIES], xDelayedTaskList1, xDelayedTaskList2, xPendingReadyList;
static List_t xTasksWaitingTermination, xSuspendedTaskList;
static volatile BaseType_t xSchedulerRunning;
static volatile TickType_t xTickCount;
static UBaseType_t made;

#ifndef HARTS
#define HARTS 1
#endif
#ifdef SMP
TCB_t *volatile pxCurrentTCBs[HARTS];
static inline word hart(void) { word it; __asm__ volatile("csrr %0, mhartid" : "=r"(it)); return it; }
#define CURRENT pxCurrentTCBs[hart()]
static volatile int kernel_lock;
static void lock(void) { while (__atomic_exchange_n(&kernel_lock, 1, __ATOMIC_ACQUIRE)) ; }
static void unlock(void) { __atomic_store_n(&kernel_lock, 0, __ATOMIC_RELEASE); }
#else
TCB_t *volatile pxCurrentTCB;
static inline word hart(void) { return 0; }
#define CURRENT pxCurrentTCB
static void lock(void) {}
static void unlock(void) {}
#endif

#define MTIME (*(volatile uint32_t *)0x200bff8)
#define MTIMECMP ((volatile uint32_t *)0x2004000)
#ifndef PERIOD
#define PERIOD 3000
#endif

/* what the kernel itself says of its turns: the hart, and the name of the task */
#define TURNS 512
struct turn { uint32_t hart; char name[NAME]; } turn_log[TURNS];
volatile uint32_t turns_logged;
volatile word work_done;

void freertos_risc_v_trap_handler(void);
void xPortStartFirstTask(void);

static void copy_name(char *to, const char *name)
{
    for (int at = 0; at < NAME; at++) {
        to[at] = *name;
        name += *name != 0;
    }
}

static void vListInitialise(List_t *list)
{
    list->pxIndex = (ListItem_t *)&list->xListEnd;
    list->xListEnd.xItemValue = ~(TickType_t)0;
    list->xListEnd.pxNext = list->xListEnd.pxPrevious = (ListItem_t *)&list->xListEnd;
    list->uxNumberOfItems = 0;
}

static void insert(List_t *list, ListItem_t *item, ListItem_t *before)
{
    item->pxNext = before;
    item->pxPrevious = before->pxPrevious;
    before->pxPrevious->pxNext = item;
    before->pxPrevious = item;
    item->pvContainer = list;
    list->uxNumberOfItems++;
}

static void vListInsert(List_t *list, ListItem_t *item)
{
    ListItem_t *before = list->xListEnd.pxNext;
    while (before != (ListItem_t *)&list->xListEnd && before->xItemValue <= item->xItemValue)
        before = before->pxNext;
    insert(list, item, before);
}

static void uxListRemove(ListItem_t *item)
{
    List_t *list = item->pvContainer;
    item->pxNext->pxPrevious = item->pxPrevious;
    item->pxPrevious->pxNext = item->pxNext;
    if (list->pxIndex == item)
        list->pxIndex = item->pxPrevious;
    item->pvContainer = NULL;
    list->uxNumberOfItems--;
}

static void ready(TCB_t *task)
{
    insert(&pxReadyTasksLists[task->uxPriority], &task->xStateListItem, pxReadyTasksLists[task->uxPriority].pxIndex);
}

static void log_turn(const TCB_t *task)
{
    if (turns_logged < TURNS) {
        struct turn *turn = &turn_log[turns_logged++];
        turn->hart = hart();
        copy_name(turn->name, task->pcTaskName);
    }
}

static int runs_elsewhere(const TCB_t *task)
{
#ifdef SMP
    for (word it = 0; it < HARTS; it++)
        if (it != hart() && pxCurrentTCBs[it] == task)
            return 1;
#endif
    return 0;
}

__attribute__((noinline)) static TCB_t *selected(void)
{
    for (int priority = PRIORITIES - 1; priority >= 0; priority--) {
        List_t *list = &pxReadyTasksLists[priority];
        for (UBaseType_t count = list->uxNumberOfItems; count; count--) {
            list->pxIndex = list->pxIndex->pxNext;
            if (list->pxIndex == (ListItem_t *)&list->xListEnd)
                list->pxIndex = list->pxIndex->pxNext;
            if (!runs_elsewhere(list->pxIndex->pvOwner))
                return list->pxIndex->pvOwner;
        }
    }
    return CURRENT;
}

__attribute__((noinline, used)) void vTaskSwitchContext(
#ifdef SMP
    BaseType_t core
#else
    void
#endif
)
{
    lock();
    TCB_t *before = CURRENT, *task = selected();
    CURRENT = task;
    if (task != before)
        log_turn(task);
    unlock();
}

__attribute__((noinline)) static int xTaskIncrementTick(void)
{
    TickType_t now = ++xTickCount;
    int woken = 0;
    for (;;) {
        ListItem_t *first = xDelayedTaskList1.xListEnd.pxNext;
        if (first == (ListItem_t *)&xDelayedTaskList1.xListEnd || first->xItemValue > now)
            return woken;
        uxListRemove(first);
        ready(first->pvOwner);
        woken = 1;
    }
}

static void next_tick(void)
{
    volatile uint32_t *compare = MTIMECMP + 2 * hart();
    compare[1] = ~0u;
    compare[0] = MTIME + PERIOD;
    compare[1] = 0;
}

__attribute__((used)) void interrupted(void)
{
    next_tick();
    lock();
    if (hart() == 0)
        xTaskIncrementTick();
    unlock();
#ifdef SMP
    vTaskSwitchContext(hart());
#else
    vTaskSwitchContext();
#endif
}

static void vPortYield(void) { __asm__ volatile("ecall" ::: "memory"); }
static void enter(void) { __asm__ volatile("csrci mstatus, 8" ::: "memory"); lock(); }
static void leave(void) { unlock(); __asm__ volatile("csrsi mstatus, 8" ::: "memory"); }

__attribute__((noinline)) static void prvInitialiseNewTask(
    TCB_t *task, const char *name, void (*code)(void *), void *given, UBaseType_t priority, StackType_t *stack, int words)
{
    copy_name(task->pcTaskName, name);
    task->xStateListItem.pvContainer = task->xEventListItem.pvContainer = NULL;
    task->uxPriority = priority;
    task->pxStack = stack;
    StackType_t *top = stack + words - 2;
#ifndef NO_END
    task->pxEndOfStack = top;
#endif
#ifdef NUMBERED
    task->uxTCBNumber = ++made;
#endif
    top = (StackType_t *)((word)top & ~15ul) - 32;
    top[0] = (word)code;
    top[2] = 0x1880;
    top[10] = (word)given;
    task->pxTopOfStack = top;
    task->xStateListItem.pvOwner = task->xEventListItem.pvOwner = task;
}

#define STACK 128
static struct slot { int used; TCB_t task; StackType_t stack[STACK] __attribute__((aligned(16))); } heap[9];

__attribute__((noinline)) static TCB_t *xTaskCreate(const char *name, void (*code)(void *), void *given, UBaseType_t priority)
{
    struct slot *slot = heap;
    while (slot->used)
        slot++;
    slot->used = 1;
    prvInitialiseNewTask(&slot->task, name, code, given, priority, slot->stack, STACK);
    ready(&slot->task);
#ifndef SMP
    if (!xSchedulerRunning && (!pxCurrentTCB || pxCurrentTCB->uxPriority <= priority))
        pxCurrentTCB = &slot->task;
#endif
    return &slot->task;
}

__attribute__((noinline)) static void vTaskDelay(TickType_t ticks)
{
    enter();
    TCB_t *task = CURRENT;
    uxListRemove(&task->xStateListItem);
    task->xStateListItem.xItemValue = xTickCount + ticks;
    vListInsert(&xDelayedTaskList1, &task->xStateListItem);
    unlock();
    vPortYield();
    __asm__ volatile("csrsi mstatus, 8" ::: "memory");
}

__attribute__((noinline)) static void vTaskSuspend(void)
{
    enter();
    TCB_t *task = CURRENT;
    uxListRemove(&task->xStateListItem);
    insert(&xSuspendedTaskList, &task->xStateListItem, xSuspendedTaskList.pxIndex);
    unlock();
    vPortYield();
    __asm__ volatile("csrsi mstatus, 8" ::: "memory");
}

__attribute__((noinline)) static void vTaskDelete(void)
{
    enter();
    TCB_t *task = CURRENT;
    uxListRemove(&task->xStateListItem);
    insert(&xTasksWaitingTermination, &task->xStateListItem, xTasksWaitingTermination.pxIndex);
    unlock();
    for (;;)
        vPortYield();
}

__attribute__((noinline)) static void prvCheckTasksWaitingTermination(void)
{
    enter();
    while (xTasksWaitingTermination.uxNumberOfItems) {
        TCB_t *task = xTasksWaitingTermination.xListEnd.pxNext->pvOwner;
        if (runs_elsewhere(task))
            break;
        uxListRemove(&task->xStateListItem);
        ((struct slot *)((char *)task - offsetof(struct slot, task)))->used = 0;
    }
    leave();
}

__attribute__((noinline)) static word work(word n)
{
    work_done++;
    return n < 2 ? n : work(n - 1) + work(n - 2);
}

static void idle(void *given)
{
    for (;;) {
        prvCheckTasksWaitingTermination();
        work(2);
        vPortYield();
    }
}

__attribute__((noinline)) static word measure(word n)
{
    word sum = work(n);
    vTaskDelay(1);
    return sum + work(n & 3);
}

static void sensor(void *given)
{
    for (word round = 0;; round++)
        measure(3 + (round & 3));
}

static void twin(void *given)
{
    for (;;) {
        work((word)given);
        vPortYield();
        work(2);
        vTaskDelay(3);
    }
}

static void passing(void *given)
{
    work((word)given);
    vTaskDelay(1);
    work(2);
    vTaskDelete();
}

static const char *const PASSING[] = {"first", "second", "third"};

static void spawner(void *given)
{
    for (word round = 0;; round++) {
        enter();
        xTaskCreate(PASSING[round % 3], passing, (void *)(3 + round % 3), 2);
        leave();
        work(4);
        vTaskDelay(6);
    }
}

static void sleeper(void *given)
{
    work(3);
    vTaskSuspend();
    for (;;)
        ;
}

static void start_here(void)
{
    next_tick();
    __asm__ volatile("csrs mie, %0" ::"r"(0x80ul));
    lock();
#ifdef SMP
    CURRENT = selected();
#endif
    log_turn(CURRENT);
    unlock();
    xPortStartFirstTask();
}

#ifdef SMP
static volatile int go;
void other_hart(void)
{
    while (!go)
        ;
    start_here();
}
#endif

__attribute__((noinline)) static void vTaskStartScheduler(void)
{
    xTaskCreate("IDLE", idle, 0, 0);
#ifdef SMP
    xTaskCreate("IDLE1", idle, 0, 0);
#endif
    __asm__ volatile("csrci mstatus, 8");
    xSchedulerRunning = 1;
#ifdef SMP
    go = 1;
#endif
    start_here();
}

int main(void)
{
    for (int priority = 0; priority < PRIORITIES; priority++)
        vListInitialise(&pxReadyTasksLists[priority]);
    vListInitialise(&xDelayedTaskList1);
    vListInitialise(&xDelayedTaskList2);
    vListInitialise(&xPendingReadyList);
    vListInitialise(&xTasksWaitingTermination);
    vListInitialise(&xSuspendedTaskList);
    xTaskCreate("sensor", sensor, 0, 3);
    xTaskCreate("twin", twin, (void *)3, 1);
    xTaskCreate("twin", twin, (void *)4, 1);
    xTaskCreate("spawner", spawner, 0, 2);
    xTaskCreate("sleeper", sleeper, 0, 2);
    vTaskStartScheduler();
    return 0;
}
