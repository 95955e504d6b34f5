/* What watchpoints are tried on: variables of every size, parts of them, an array, locals with their scope, atomics. */

typedef unsigned long word;

union parts {
    unsigned long long all;
    unsigned words[2];
    unsigned char bytes[8];
};

volatile int counter, limit = 5;
volatile union parts parts;
volatile short table[16];
volatile int shared;
volatile word log2;

static __attribute__((noinline)) int sum(int n)
{
    volatile int total = 0;
    for (int i = 0; i < n; i++)
        total += i;
    return total;
}

static __attribute__((noinline)) void piecewise(unsigned seed)
{
    parts.all = 0x1122334455667788ull;
    parts.words[1] = seed;
    parts.bytes[3] = (unsigned char)seed;
    parts.bytes[3] = (unsigned char)seed; /* the same once more */
    parts.words[0] = parts.words[1];
}

static __attribute__((noinline)) int atomics(int n)
{
    int old = __atomic_fetch_add(&shared, n, __ATOMIC_RELAXED);
    int expected = old + n;
    __atomic_compare_exchange_n(&shared, &expected, old + 2 * n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return old;
}

static __attribute__((noinline)) int descend(int depth)
{
    volatile int here = depth;
    int below = depth ? descend(depth - 1) : 0;
    here += below;
    return here;
}

int main(void)
{
    int result = 0;
    for (int i = 0; i < 12; i++) {
        counter = counter + 1;
        if (counter > limit)
            counter = counter - 3;
        table[i] = (short)(table[i] + i);
        result += sum(i & 3);
        piecewise((unsigned)i * 0x01010101u);
        result += atomics(i);
    }
    result += descend(4);
    log2 = (word)result;
    return 0;
}
