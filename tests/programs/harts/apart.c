/* Each hart does work of its own and shares nothing: what it executes is up to it alone. Then it waits. */
__attribute__((noinline)) unsigned first(unsigned hart, unsigned round)
{
    unsigned sum = round;
    for (unsigned i = 0; i < hart + 2; i++)
        sum = sum * 31 + i;
    return sum;
}

__attribute__((noinline)) unsigned second(unsigned hart, unsigned sum) { return sum ^ hart; }

__attribute__((noinline)) void done(void) { __asm__ volatile(""); }

volatile unsigned result[32];

int main(unsigned hart)
{
    for (unsigned round = 0; round < 4 + hart; round++)
        result[hart] = second(hart, first(hart, round));
    done();
    for (;;)
        ;
}
