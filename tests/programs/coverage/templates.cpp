// Three functions of one name: two of a template, and one for another type.
extern "C" int finish(int value);

template <int N> __attribute__((noinline)) int add(int x)
{
    if (N == 1 && x == 2)
        return 100;
    return x + N;
}

__attribute__((noinline)) long add(long x)
{
    return x + 1;
}

int finish(int value)
{
    return value;
}

volatile long result;

int main()
{
    for (int i = 0; i < 3; i++)
        result = result + add<1>(i);
    for (int i = 0; i < 4; i++)
        result = result + add<2>(i);
    for (int i = 0; i < 5; i++)
        result = result + add(static_cast<long>(i));
    return finish(static_cast<int>(result));
}
