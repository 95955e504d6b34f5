/* Two harts pay into one account, 1 each time, 20 times each, and `finish` is called with less than 40.
 *
 * `deposit` reads the balance, notes it, and writes the new one: what the other hart has written in between is lost.
 * Hart 0 waits until the other one has paid, and ends the program.
 */
#define HARTS 2
#define PAYMENTS 20

struct note {
    int before, amount;
};

struct note notes[HARTS][PAYMENTS];
volatile int paid[HARTS]; /* how often each hart has paid */
volatile int balance;
volatile int result;

__attribute__((noinline)) void note(int hart, int before, int amount)
{
    struct note *next = &notes[hart][paid[hart]];
    next->before = before;
    next->amount = amount;
}

__attribute__((noinline)) void deposit(int hart, int amount)
{
    int before = balance;
    note(hart, before, amount);
    balance = before + amount;
    paid[hart]++;
}

__attribute__((noinline)) int finish(int value)
{
    result = value;
    return value;
}

int main(int hart)
{
    while (paid[hart] < PAYMENTS)
        deposit(hart, 1);
    if (hart != 0)
        for (;;)
            ;
    while (paid[1] < PAYMENTS)
        ;
    return finish(balance);
}
