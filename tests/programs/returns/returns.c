/* Returns of every sort: those of setjmp and longjmp, of two tasks that take turns, of a task that a trap takes the
   hart from, of tail calls and of functions that the compiler saves registers for, and three of a function whose
   return address its own loop writes over. Compile it with -msave-restore. */
#include <setjmp.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef struct { uintptr_t ra, sp, s[12]; } context;
void switch_to(context *from, context *to); /* switch.S */
void on_trap(void);
extern uintptr_t tasks_of_traps[2];

static jmp_buf back;
static context mains, first, second;
static uintptr_t stacks[4][128];
volatile int sink;

NOINLINE int leaf(int n) { return n * 3 + sink; }
NOINLINE int twice(int n) { sink += leaf(n); return leaf(n + 1); }          /* ends with a tail call */
NOINLINE int saving(int a, int b, int c) { int x = leaf(a), y = leaf(b), z = twice(c); return x ^ y ^ z; }

NOINLINE void give_up(int n) { if (n == 0) longjmp(back, 1); give_up(n - 1); sink++; }
NOINLINE void long_way(void) { if (setjmp(back) == 0) give_up(3); sink++; }

/* Tasks that take turns: the second one begins, and ends, with a return that no call belongs to. */
NOINLINE void pause_task(context *own, context *other) { sink++; switch_to(own, other); sink++; }
NOINLINE void turns(int n, context *own, context *other) { while (n--) pause_task(own, other); sink += leaf(n); }
void task_over(void) { switch_to(&second, &mains); for (;;) ; }
NOINLINE void task(void) { turns(2, &second, &mains); sink++; }
NOINLINE void take_turns(void)
{
    second.ra = (uintptr_t)task;
    second.sp = (uintptr_t)(stacks[1] + 128);
    __asm__ volatile("" ::: "memory");
    turns(1, &mains, &second);
    turns(2, &mains, &second);
}

/* Tasks that a trap switches between: each ecall goes on in the other one. */
NOINLINE void yield(void) { __asm__ volatile("ecall" ::: "memory"); sink++; }
NOINLINE void worker(int n) { while (n--) yield(); sink += leaf(n); }
void other_task(void) { for (;;) { worker(2); sink++; } }
NOINLINE void in_turns_by_traps(void) { worker(5); sink += saving(1, 2, 3); }

/* The loop that writes too far: the return address lies above the characters. */
NOINLINE void greet(const uintptr_t *text, int words)
{
    volatile uintptr_t name[4];
    for (int i = 0; i < words; i++)
        name[i] = text[i];
    sink += leaf(name[0]);
}

uintptr_t attack[16];
jmp_buf restart;
volatile int words_too_many;
volatile unsigned faults;

void recover(void) { faults++; longjmp(restart, 1); }
void gadget(void) { sink++; recover(); }

NOINLINE void overrun(uintptr_t to)
{
    for (int i = 0; i < 16; i++)
        attack[i] = to;
    if (setjmp(restart) == 0)
        greet(attack, words_too_many);
    sink++;
}

NOINLINE void round_done(void) { sink++; }

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    tasks_of_traps[1] = (uintptr_t)(stacks[2] + 64);
    words_too_many = 6;
    for (;;) {
        long_way();
        take_turns();
        in_turns_by_traps();
        saving(4, 5, 6);
        greet(attack, 4);           /* what it is for */
        overrun(0x4140);            /* where there is no memory */
        overrun((uintptr_t)gadget); /* to another function */
        round_done();
    }
}
