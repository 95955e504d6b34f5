/* A million instructions: one variable changes in every round, one every 16,384 rounds, one never but at the beginning. */

volatile unsigned often, rare, first;
volatile unsigned table[64];

static __attribute__((noinline)) unsigned step(unsigned i)
{
    table[i & 63] += i;
    return table[(i * 7) & 63] ^ i;
}

int main(void)
{
    unsigned sum = 0;
    first = 1;
    for (unsigned i = 1; i < 1u << 20; i++) {
        often++;
        if ((i & 0x3fff) == 0)
            rare++;
        sum += step(i);
    }
    return (int)sum;
}
