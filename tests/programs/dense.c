/* Much trace in little time: an indirect call every few instructions, for ever. */
typedef unsigned (*step)(unsigned);

static unsigned triple(unsigned x) { return x * 3 + 1; }
static unsigned shift(unsigned x) { return x >> 1; }
static unsigned flip(unsigned x) { return x ^ 0x5a5a; }

static const volatile step steps[4] = {triple, shift, flip, shift};
volatile unsigned result;

int main(void)
{
    unsigned x = 1;
    for (;;) {
        x = steps[x & 3](x);
        result = x;
    }
}
