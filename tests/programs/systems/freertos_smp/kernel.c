/* A small kernel with the structures of FreeRTOS V11 for several cores (tasks.c with configNUMBER_OF_CORES above 1): what
 * each core runs is in pxCurrentTCBs, where a task runs in its xTaskRunState, and two locks, of tasks and of interrupts,
 * keep the cores apart. Functions have its names, and what is in which list is as there: tasks that run stay in theirs.
 */
#include "notes.h"
#include "tasks.h"

#define MAX_PRIORITIES 3
#define TASKS 12
#define NAME_LENGTH 12
#define DELAY_FOREVER ((word)-1)

enum { taskTASK_NOT_RUNNING = -1, taskTASK_SCHEDULED_TO_YIELD = -2 };

typedef struct xLIST_ITEM {
    word xItemValue;
    struct xLIST_ITEM *pxNext, *pxPrevious;
    void *pvOwner;
    struct xLIST *pxContainer;
} ListItem_t;

typedef struct xMINI_LIST_ITEM {
    word xItemValue;
    struct xLIST_ITEM *pxNext, *pxPrevious;
} MiniListItem_t;

typedef struct xLIST {
    volatile word uxNumberOfItems;
    ListItem_t *pxIndex;
    MiniListItem_t xListEnd;
} List_t;

typedef struct tskTaskControlBlock {
    volatile word *pxTopOfStack;
    word uxCoreAffinityMask;
    ListItem_t xStateListItem, xEventListItem;
    word uxPriority;
    word *pxStack;
    volatile long xTaskRunState;
    word uxTaskAttributes;
    char pcTaskName[NAME_LENGTH];
    word uxTCBNumber, uxTaskNumber;
} TCB_t;

TCB_t *volatile pxCurrentTCBs[HARTS];
static List_t pxReadyTasksLists[MAX_PRIORITIES], xDelayedTaskList1, xDelayedTaskList2, xPendingReadyList;
static List_t xTasksWaitingTermination, xSuspendedTaskList;
static List_t *volatile pxDelayedTaskList = &xDelayedTaskList1;
static volatile word uxCurrentNumberOfTasks, uxDeletedTasksWaitingCleanUp, xTickCount, uxTaskNumber;
static volatile long xSchedulerRunning, xYieldPendings[HARTS];
static TCB_t blocks[TASKS];
static word stacks[TASKS][WORDS] __attribute__((aligned(16)));
static word xISRStacks[HARTS][WORDS] __attribute__((aligned(16)));
word *const xISRStackTops[] = {
    xISRStacks[0] + WORDS,
#if HARTS > 1
    xISRStacks[1] + WORDS,
#endif
};
static volatile word started;

void xPortStartFirstTask(void);
void vPortYield(void);
void freertos_risc_v_trap_handler(void);

/* The locks of the port: each belongs to a core, which may take it again. */
static struct {
    volatile int owner, count, taken;
} task_lock = {-1, 0, 0}, isr_lock = {-1, 0, 0};

#define TAKE(LOCK, CORE)                                                                                                \
    do {                                                                                                                \
        if ((LOCK).owner != (CORE))                                                                                     \
            while (__atomic_exchange_n(&(LOCK).taken, 1, __ATOMIC_ACQUIRE))                                             \
                ;                                                                                                       \
        (LOCK).owner = (CORE);                                                                                          \
        (LOCK).count++;                                                                                                 \
    } while (0)
#define GIVE(LOCK)                                                                                                      \
    do {                                                                                                                \
        if (!--(LOCK).count) {                                                                                          \
            (LOCK).owner = -1;                                                                                          \
            __atomic_store_n(&(LOCK).taken, 0, __ATOMIC_RELEASE);                                                       \
        }                                                                                                               \
    } while (0)

static void both_locks(void)
{
    int core = hart_number();
    TAKE(task_lock, core);
    TAKE(isr_lock, core);
}

static void no_locks(void)
{
    GIVE(isr_lock);
    GIVE(task_lock);
}

static void vTaskEnterCritical(void)
{
    interrupts_off();
    both_locks();
}

static void vTaskExitCritical(void)
{
    no_locks();
    interrupts_on();
}

static void vListInitialise(List_t *list)
{
    list->xListEnd.xItemValue = DELAY_FOREVER;
    list->xListEnd.pxNext = list->xListEnd.pxPrevious = list->pxIndex = (ListItem_t *)&list->xListEnd;
    list->uxNumberOfItems = 0;
}

static void insert_before(List_t *list, ListItem_t *at, ListItem_t *item)
{
    item->pxNext = at;
    item->pxPrevious = at->pxPrevious;
    at->pxPrevious->pxNext = item;
    at->pxPrevious = item;
    item->pxContainer = list;
    list->uxNumberOfItems++;
}

static APART void vListInsertEnd(List_t *list, ListItem_t *item)
{
    insert_before(list, (ListItem_t *)&list->xListEnd, item);
}

static APART void vListInsert(List_t *list, ListItem_t *item)
{
    ListItem_t *at = list->xListEnd.pxNext;
    while (at->xItemValue <= item->xItemValue && at != (ListItem_t *)&list->xListEnd)
        at = at->pxNext;
    insert_before(list, at, item);
}

static APART void uxListRemove(ListItem_t *item)
{
    item->pxNext->pxPrevious = item->pxPrevious;
    item->pxPrevious->pxNext = item->pxNext;
    item->pxContainer->uxNumberOfItems--;
    item->pxContainer = 0;
}

static void ready(TCB_t *task)
{
    vListInsertEnd(&pxReadyTasksLists[task->uxPriority], &task->xStateListItem);
}

static APART void trace_switched_in(TCB_t *task)
{
    note(NOTE_SWITCHED_IN, task, task->uxTCBNumber, task->pcTaskName);
}

/* The ready task of the highest priority that no other core runs; those of one priority take turns. */
static APART void prvSelectHighestPriorityTask(int xCoreID)
{
    TCB_t *before = pxCurrentTCBs[xCoreID];
    if (before->xStateListItem.pxContainer == &pxReadyTasksLists[before->uxPriority]) {
        uxListRemove(&before->xStateListItem);
        ready(before);
    }
    for (int priority = MAX_PRIORITIES - 1; priority >= 0; priority--) {
        List_t *list = &pxReadyTasksLists[priority];
        ListItem_t *end = (ListItem_t *)&list->xListEnd;
        for (ListItem_t *item = end->pxNext; item != end; item = item->pxNext) {
            TCB_t *task = item->pvOwner;
            int runs_elsewhere = task->xTaskRunState != taskTASK_NOT_RUNNING && task != before;
            if (runs_elsewhere || !(task->uxCoreAffinityMask >> xCoreID & 1))
                continue;
            before->xTaskRunState = taskTASK_NOT_RUNNING;
            task->xTaskRunState = xCoreID;
            pxCurrentTCBs[xCoreID] = task;
            return;
        }
    }
}

APART void vTaskSwitchContext(int xCoreID)
{
    both_locks();
    xYieldPendings[xCoreID] = 0;
    prvSelectHighestPriorityTask(xCoreID);
    trace_switched_in(pxCurrentTCBs[xCoreID]);
    no_locks();
}

APART int xTaskIncrementTick(void)
{
    ListItem_t *end = (ListItem_t *)&pxDelayedTaskList->xListEnd;
    xTickCount++;
    while (end->pxNext != end && end->pxNext->xItemValue <= xTickCount) {
        TCB_t *task = end->pxNext->pvOwner;
        uxListRemove(&task->xStateListItem);
        ready(task);
    }
    return 1;
}

/* What the trap handler calls, on the core's own stack. */
APART void freertos_risc_v_application_trap(word cause)
{
    int core = hart_number();
    if ((long)cause < 0) {
        timer_next();
        both_locks();
        if (core == 0)
            xTaskIncrementTick();
        no_locks();
    }
    vTaskSwitchContext(core);
}

/* Memory of what has been deleted is freed by an idle task. */
static APART void prvCheckTasksWaitingTermination(void)
{
    while (uxDeletedTasksWaitingCleanUp) {
        vTaskEnterCritical();
        ListItem_t *first = xTasksWaitingTermination.xListEnd.pxNext;
        TCB_t *task = first->pvOwner;
        int is_free = uxDeletedTasksWaitingCleanUp && task->xTaskRunState == taskTASK_NOT_RUNNING;
        if (is_free) {
            uxListRemove(first);
            uxCurrentNumberOfTasks--;
            uxDeletedTasksWaitingCleanUp--;
            task->pxStack = 0;
        }
        vTaskExitCritical();
        if (!is_free)
            break;
    }
}

static void prvIdleTask(void *unused)
{
    for (;;)
        prvCheckTasksWaitingTermination();
}

static void prvPassiveIdleTask(void *unused)
{
    for (;;)
        ;
}

/* Returns 0 if another core runs the task, which is not asked to yield here. */
APART int vTaskDelete(TCB_t *task)
{
    vTaskEnterCritical();
    int core = hart_number(), itself = task == pxCurrentTCBs[core];
    int elsewhere = task->xTaskRunState != taskTASK_NOT_RUNNING && !itself;
    if (!elsewhere) {
        note(NOTE_DELETED, task, task->uxTCBNumber, task->pcTaskName);
        uxListRemove(&task->xStateListItem);
        vListInsertEnd(&xTasksWaitingTermination, &task->xStateListItem);
        uxDeletedTasksWaitingCleanUp++;
    }
    vTaskExitCritical();
    if (itself)
        vPortYield();
    return !elsewhere;
}

APART void vTaskDelay(word ticks)
{
    vTaskEnterCritical();
    TCB_t *task = pxCurrentTCBs[hart_number()];
    uxListRemove(&task->xStateListItem);
    task->xStateListItem.xItemValue = xTickCount + ticks;
    vListInsert(pxDelayedTaskList, &task->xStateListItem);
    vTaskExitCritical();
    vPortYield();
}

static void returned(void)
{
    for (;;)
        ;
}

/* The frame is what portASM.S restores; behind its mret interrupts are on. */
static APART void prvInitialiseNewTask(
    void (*entry)(void *), const char *name, void *argument, word priority, word affinity, TCB_t *task, word *stack)
{
    task->pxStack = stack;
    word *frame = stack + WORDS - 32;
    frame[0] = (word)entry;
    frame[1] = (word)returned;
    frame[2] = 0x1880; /* MPP: machine mode, MPIE */
    frame[10] = (word)argument;
    task->pxTopOfStack = frame;
    task->uxPriority = priority;
    task->uxCoreAffinityMask = affinity;
    task->xTaskRunState = taskTASK_NOT_RUNNING;
    for (int i = 0; i < NAME_LENGTH; i++)
        task->pcTaskName[i] = *name ? *name++ : 0;
    task->xStateListItem.pvOwner = task->xEventListItem.pvOwner = task;
}

static APART void prvAddNewTaskToReadyList(TCB_t *task)
{
    uxCurrentNumberOfTasks++;
    task->uxTCBNumber = ++uxTaskNumber;
    note(NOTE_CREATED, task, task->uxTCBNumber, task->pcTaskName);
    ready(task);
}

APART TCB_t *xTaskCreateAffinitySet(
    void (*entry)(void *), const char *name, void *argument, word priority, word affinity)
{
    int i = 0;
    both_locks();
    while (blocks[i].pxStack)
        i++;
    prvInitialiseNewTask(entry, name, argument, priority, affinity, &blocks[i], stacks[i]);
    prvAddNewTaskToReadyList(&blocks[i]);
    no_locks();
    return &blocks[i];
}

static void create_idle(int core, const char *name)
{
    void (*entry)(void *) = core ? prvPassiveIdleTask : prvIdleTask;
    TCB_t *task = xTaskCreateAffinitySet(entry, name, 0, IDLE, -1);
    task->uxTaskAttributes = 1;
    task->xTaskRunState = core;
    pxCurrentTCBs[core] = task;
}

static void vTaskStartScheduler(void)
{
    static const char *const names[] = {"IDLE0", "IDLE1"};
    for (int core = 0; core < HARTS; core++)
        create_idle(core, names[core]);
    xSchedulerRunning = 1;
}

void system_begin(int hart)
{
    if (hart == 0) {
        List_t *lists[] = {&xDelayedTaskList1, &xDelayedTaskList2, &xPendingReadyList, &xTasksWaitingTermination,
                           &xSuspendedTaskList};
        for (int i = 0; i < MAX_PRIORITIES; i++)
            vListInitialise(&pxReadyTasksLists[i]);
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
            vListInitialise(lists[i]);
        program_begin();
        vTaskStartScheduler();
        started = 1;
    }
    while (!started)
        ;
    __asm__ volatile("csrw mtvec, %0" ::"r"(freertos_risc_v_trap_handler));
    timer_next();
    __asm__ volatile("csrs mie, %0" ::"r"(0x80));
    trace_switched_in(pxCurrentTCBs[hart]);
    xPortStartFirstTask();
}

void *task_begin(void (*entry)(void *), const char *name, void *argument, int priority)
{
    if (!xSchedulerRunning)
        return xTaskCreateAffinitySet(entry, name, argument, priority, -1);
    interrupts_off();
    void *task = xTaskCreateAffinitySet(entry, name, argument, priority, -1);
    interrupts_on();
    return task;
}
void task_sleep(word ticks) { vTaskDelay(ticks); }
void task_yield(void) { vPortYield(); }
void task_end(void) { vTaskDelete(pxCurrentTCBs[hart_number()]); }
int task_stop(void *task) { return vTaskDelete(task); }
