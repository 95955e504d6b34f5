/* Cooperative tasks in a ring of pointers, each a function with its own state. */
#include "base.h"

#define TASKS 5
#define TURNS 200

struct task {
    struct task *next;
    void (*step)(struct task *);
    int left;
    int done;
};

static struct task tasks[TASKS];
static struct task *ring;
static int finished;
int trace_of_steps[TURNS];

static void HANDLER on_trap(void)
{
    for (;;) {
    }
}

static APART void count_down(struct task *task)
{
    task->left--;
    if (task->left == 0)
        task->done = 1;
}

static APART void halve(struct task *task)
{
    task->left = task->left / 2;
    if (task->left == 0)
        task->done = 1;
}

static APART void add(struct task *task, void (*step)(struct task *), int left)
{
    task->step = step;
    task->left = left;
    task->done = 0;
    task->next = ring ? ring->next : task;
    if (ring)
        ring->next = task;
    ring = task;
}

static APART void drop_next(struct task *before)
{
    struct task *gone = before->next;
    before->next = gone->next;
    gone->next = 0;
    if (ring == gone)
        ring = before;
    finished++;
}

int main(void)
{
    int turn = 0;
    handle_traps(on_trap);
    for (int i = 0; i < TASKS; i++)
        add(&tasks[i], i & 1 ? halve : count_down, 4 + 3 * i);
    while (finished < TASKS) {
        struct task *task = ring->next;
        task->step(task);
        if (turn < TURNS)
            trace_of_steps[turn++] = task->left;
        if (task->done)
            drop_next(ring);
        else
            ring = task;
    }
    return turn & 1;
}
