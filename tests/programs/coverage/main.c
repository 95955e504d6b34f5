/* Compiled for the target and, with --coverage, for this machine: gcov says how often each line runs. */
#include "shared.h"

int finish(int value);
int elsewhere(int value);
int same_name_elsewhere(void);

volatile int results[8];

static int helper(int x) { return x + 1; }

static int never(int x)
{
    x = x * 3;
    return x - 1;
}

int collatz(int n)
{
    int steps = 0;
    while (n != 1) {
        if (n & 1)
            n = 3 * n + 1;
        else
            n = n / 2;
        steps++;
    }
    return steps;
}

int letter(int c)
{
    switch (c) {
    case 1:
        return 'a';
    case 2:
        return 'b';
    case 100:
        return never(c);
    default:
        break;
    }
    if (c > 1000)
        return never(c);
    return c;
}

int deep(int n)
{
    if (n == 0)
        return 0;
    return 1 + deep(n - 1);
}

int main(void)
{
    int sum = 0;
    for (int i = 1; i < 20; i++) {
        sum += collatz(i);
        for (int k = 0; k < i; k++)
            sum += helper(k);
    }
    results[0] = sum;
    for (int i = 0; i < 7; i++) {
        results[1] += letter(i);
        results[2] += clamp(i);
    }
    results[3] = clamp(90);
    do {
        results[4]++;
    } while (results[4] < 5);
    results[5] = deep(12) + elsewhere(3);
    results[6] = same_name_elsewhere();
    return finish(results[5]);
}
