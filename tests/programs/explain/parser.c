/* A recursive descent parser of sums and products with brackets. */
#include "base.h"

static const char *const lines[] = {"1+2*3", "(4+5)*(6+7)", "((((8))))", "2*(3+4*(5+6))+7", "9*9*9+(1+1)"};
static const char *at;
static int depth, deepest;
int results[5];

static int sum(void);

static void HANDLER on_trap(void)
{
    for (;;) {
    }
}

static APART int number(void)
{
    int value = 0;
    while (*at >= '0' && *at <= '9') {
        value = value * 10 + (*at - '0');
        at++;
    }
    return value;
}

static APART int factor(void)
{
    int value;
    if (*at != '(')
        return number();
    at++;
    depth++;
    if (depth > deepest)
        deepest = depth;
    value = sum();
    depth--;
    at++;
    return value;
}

static APART int product(void)
{
    int value = factor();
    while (*at == '*') {
        at++;
        value = value * factor();
    }
    return value;
}

static APART int sum(void)
{
    int value = product();
    while (*at == '+') {
        at++;
        value = value + product();
    }
    return value;
}

static APART int evaluate(const char *line)
{
    at = line;
    return sum();
}

int main(void)
{
    handle_traps(on_trap);
    for (int round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 5; i++)
            results[i] = evaluate(lines[i]);
    }
    return deepest & 1;
}
