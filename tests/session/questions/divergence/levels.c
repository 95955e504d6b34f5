/* Orders that are priced and added up, for builds at several levels of optimisation. BUG: the largest is left out. */
#define N 24
unsigned char inputs[N] = {12, 200, 33, 41, 250, 66, 7, 18, 99, 130, 141, 5, 17, 180, 191, 2, 213, 24, 235, 16, 57, 68, 79, 80};
volatile unsigned result;
static unsigned table[16];

static __attribute__((noinline)) unsigned discount(unsigned value)
{
    if (value > 100)
        return 25;
    if (value > 50)
        return 10;
    return 0;
}

static __attribute__((noinline)) unsigned price(unsigned value)
{
    return value * (100 - discount(value)) / 100;
}

static __attribute__((noinline)) unsigned checked(const unsigned char *from, unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned value = from[i];
#if BUG
        if (value >= 250)
#else
        if (value > 250)
#endif
            continue;
        sum += price(value);
        table[value & 15]++;
    }
    return sum;
}

static __attribute__((noinline)) unsigned folded(unsigned sum)
{
    unsigned most = 0;
    for (unsigned i = 0; i < 16; i++)
        if (table[i] > most)
            most = table[i];
    return sum * 31 + most;
}

int main(void)
{
    result = folded(checked(inputs, N));
    return 0;
}
