/* The limit that a function chose is stored by its caller: the branch that chose it is in the function. */
static volatile unsigned measured[4] = {20, 70, 90, 250};
static unsigned refused;
unsigned duty;

static unsigned __attribute__((noinline)) limited(unsigned value, unsigned limit)
{
    if (value > limit) {
        refused++;
        return 255;
    }
    return value;
}

void __attribute__((noinline)) finish(void) { __asm__ volatile(""); }

int main(void)
{
    for (int i = 0; i < 4; i++)
        duty = limited(measured[i], 100);
    finish();
    return 0;
}
