/* Small matrices in local arrays: products, a transpose, and rows that are copied. */
#include "base.h"

#define N 4

int trace_of[12];

static void HANDLER on_trap(void)
{
    for (;;) {
    }
}

static APART void fill(int *values, int count, int seed)
{
    for (int i = 0; i < count; i++)
        values[i] = (seed + i * 7) % 10;
}

static APART void copy(int *to, const int *from, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = from[i];
}

static APART void multiply(const int *a, const int *b, int *product)
{
    for (int row = 0; row < N; row++) {
        for (int column = 0; column < N; column++) {
            int sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[row * N + k] * b[k * N + column];
            product[row * N + column] = sum;
        }
    }
}

static APART int trace(const int *values)
{
    int sum = 0;
    for (int i = 0; i < N; i++)
        sum += values[i * N + i];
    return sum;
}

static APART int power(int seed, int exponent)
{
    int base[N * N];
    int result[N * N];
    int next[N * N];
    fill(base, N * N, seed);
    copy(result, base, N * N);
    for (int i = 1; i < exponent; i++) {
        multiply(result, base, next);
        copy(result, next, N * N);
    }
    return trace(result);
}

int main(void)
{
    handle_traps(on_trap);
    for (int seed = 0; seed < 12; seed++)
        trace_of[seed] = power(seed, 3);
    return trace_of[0] & 1;
}
