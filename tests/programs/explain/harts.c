/* Two harts (examples/two_harts/start.S). FAULT: what goes wrong.
 *
 * 0 nothing: they meet at a barrier each round, and count under two locks
 * 1 one takes the locks in the other order: a deadlock, after some rounds
 * 2 one stores through a null pointer, in a handler that stays; the other waits for it at the barrier
 */
#define HARTS 2

volatile int first_lock, second_lock;
volatile unsigned arrived[HARTS], counted;
volatile unsigned *volatile cell = &counted;

void __attribute__((interrupt, aligned(4))) on_trap(void)
{
    for (;;) {
    }
}

static __attribute__((noinline)) void take(volatile int *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {
    }
}

static __attribute__((noinline)) void release(volatile int *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

static __attribute__((noinline)) void meet(int hart)
{
    arrived[hart]++;
    while (arrived[1 - hart] < arrived[hart]) {
    }
}

static __attribute__((noinline)) void count(int hart, unsigned round)
{
    int turned = FAULT == 1 && hart == 1 && round > 5;
    take(turned ? &second_lock : &first_lock);
    for (volatile int wait = 0; wait < 200; wait++) {
    }
    take(turned ? &first_lock : &second_lock);
    *cell = *cell + 1;
    release(&second_lock);
    release(&first_lock);
}

static __attribute__((noinline)) void spoil(int hart, unsigned round)
{
    volatile unsigned *at = FAULT == 2 && hart == 1 && round == 6 ? 0 : &counted;
    *at = *at;
}

int main(int hart)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    for (unsigned round = 0;; round++) {
        count(hart, round);
        meet(hart);
        spoil(hart, round);
    }
}
