#include "shared.h"

static int helper(int x)
{
    return clamp(x) * 2;
}

int elsewhere(int value)
{
    int sum = 0;
    for (int i = 0; i < value; i++)
        sum += helper(i);
    return sum;
}

int finish(int value)
{
    return value;
}
