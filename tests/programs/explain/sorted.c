/* A sorted list with a list of free nodes: inserted, searched and removed again and again. */
#include "base.h"

#define NODES 24

struct node {
    struct node *next;
    int key;
};

static struct node pool[NODES];
static struct node *unused;
static struct node *first;
int sums[10];

static void HANDLER on_trap(void)
{
    for (;;) {
    }
}

static APART void release(struct node *node)
{
    node->next = unused;
    unused = node;
}

static APART struct node *take(void)
{
    struct node *node = unused;
    unused = node->next;
    return node;
}

static APART void insert(int key)
{
    struct node **link = &first;
    struct node *node = take();
    node->key = key;
    while (*link && (*link)->key < key)
        link = &(*link)->next;
    node->next = *link;
    *link = node;
}

static APART int remove_first(void)
{
    struct node *node = first;
    int key = node->key;
    first = node->next;
    release(node);
    return key;
}

static APART int total(void)
{
    int sum = 0;
    for (struct node *node = first; node; node = node->next)
        sum += node->key;
    return sum;
}

int main(void)
{
    handle_traps(on_trap);
    for (int i = 0; i < NODES; i++)
        release(&pool[i]);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 8; i++)
            insert(i * 37 % 11 + round);
        sums[round] = total();
        for (int i = 0; i < 8; i++)
            sums[round] -= remove_first();
    }
    return sums[0];
}
