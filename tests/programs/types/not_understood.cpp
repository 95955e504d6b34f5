/* Values of types that the expressions of `trace log`, `calls-of` and `why` do not understand, beside others. */
typedef int pair __attribute__((vector_size(8)));

struct base {
    int at;
};

struct left : virtual base {
    int own;
};

volatile int result;
left leaf;

__attribute__((noinline)) int both(pair two, left *of, int plain)
{
    of->own += two[0] + plain;
    return of->own;
}

__attribute__((noinline)) int summed(int count)
{
    volatile int values[count];
    for (int i = 0; i < count; i++)
        values[i] = i;
    return values[count - 1];
}

int main()
{
    pair two = {3, 4};
    result = both(two, &leaf, 5);
    result = both(two, &leaf, 6);
    result = summed(result);
    return 0;
}
