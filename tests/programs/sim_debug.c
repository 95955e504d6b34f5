/* What the debugger tests debug: calls two deep, a loop, a global that changes, and no end. */
volatile unsigned counter;
volatile unsigned watched;

__attribute__((noinline)) unsigned inner(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += i * n;
    return sum;
}

__attribute__((noinline)) unsigned outer(unsigned n)
{
    unsigned a = inner(n);
    unsigned b = inner(n + 1);
    return a + b;
}

__attribute__((noinline)) void work(unsigned round)
{
    counter = counter + outer(3);
    if (round % 16 == 15)
        watched = counter;
}

int main(void)
{
    for (unsigned round = 0;; round++)
        work(round);
}
