/* Accounts under spin locks; money goes from one to another. */
#include "base.h"

#define ACCOUNTS 4

struct account {
    volatile int lock;
    int money;
};

static struct account accounts[ACCOUNTS];
int moved, refused;

static void HANDLER on_trap(void)
{
    for (;;) {
    }
}

static APART void lock(struct account *account)
{
    int before;
    do {
        __asm__ volatile("amoswap.w.aq %0, %1, (%2)" : "=r"(before) : "r"(1), "r"(&account->lock) : "memory");
    } while (before);
}

static APART void unlock(struct account *account)
{
    __asm__ volatile("fence rw,w" ::: "memory");
    account->lock = 0;
}

static APART int transfer(struct account *from, struct account *to, int money)
{
    lock(from);
    if (from->money < money) {
        refused++;
        unlock(from);
        return -1;
    }
    lock(to);
    from->money -= money;
    to->money += money;
    moved++;
    unlock(to);
    unlock(from);
    return 0;
}

static APART int balance(void)
{
    int sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        lock(&accounts[i]);
        sum += accounts[i].money;
        unlock(&accounts[i]);
    }
    return sum / ACCOUNTS;
}

int main(void)
{
    handle_traps(on_trap);
    for (int i = 0; i < ACCOUNTS; i++)
        accounts[i].money = 100;
    for (int n = 0; n < 120; n++)
        transfer(&accounts[n % 4], &accounts[(n + 1 + n % 3) % 4], 7 + n % 13);
    return balance() - 100;
}
