/* A value that a register keeps through many calls, each of which saves that register on the stack and loads it again. */
volatile int input = 1, calls;
int result;

static int __attribute__((noinline)) measured(void)
{
    return input + 41;
}

static void __attribute__((noinline)) busy(void)
{
    __asm__ volatile("" ::: "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11");
    calls++;
}

void __attribute__((noinline)) finish(void)
{
    for (;;)
        calls = calls;
}

int main(void)
{
    int kept = measured();
    for (int i = 0; i < 100; i++)
        busy();
    result = kept;
    finish();
}
