/* Adds up orders. With BUG = 1 to 8 it has a bug, in the line that says so; which inputs show it is for the test. */
#include <stdint.h>

#ifndef BUG
#define BUG 0
#endif
#define COUNT 8

uint8_t inputs[COUNT * 3] = {11, 22, 33, 44, 55, 66, 77, 88};
volatile uint32_t result;
static int stock[4] = {9, 7, 5, 3};

static int __attribute__((noinline)) discount(int amount, int customer)
{
    if (customer > 200) {
#if BUG == 1
        return amount / 3; /* BUG 1 */
#else
        return amount / 4;
#endif
    }
    if (amount > 250) {
#if BUG == 2
        return amount / 9; /* BUG 2 */
#else
        return 25;
#endif
    }
    return 0;
}

static int __attribute__((noinline)) shipping(int amount, int zone)
{
    switch (zone & 7) {
    case 0:
        return 0;
    case 1:
#if BUG == 3
        return amount / 8; /* BUG 3 */
#else
        return 5;
#endif
    case 2:
    case 3:
        return amount > 100 ? 0 : 9;
    default:
        return 15;
    }
}

static int __attribute__((noinline)) taken_from_stock(int item, int count)
{
    int *there = &stock[item & 3];
    if (*there >= count) {
        *there -= count;
        return count;
    }
#if BUG == 4
    int rest = *there + 1; /* BUG 4 */
#else
    int rest = *there;
#endif
    *there = 0;
    return rest;
}

static uint32_t __attribute__((noinline)) checked(uint32_t sum, int value)
{
    if (value < 0) {
#if BUG == 5
        return sum; /* BUG 5 */
#else
        return sum * 31;
#endif
    }
    while (value > 64) {
        sum += value & 63;
#if BUG == 6
        if (value > 240)
            sum++; /* BUG 6 */
#endif
        value -= 64;
    }
    return sum * 31 + value;
}

int main(void)
{
    uint32_t sum = 7;
    for (int i = 0; i < COUNT; i++) {
        int customer = inputs[3 * i], amount = inputs[3 * i + 1] * 2, zone = inputs[3 * i + 2];
        int count = taken_from_stock(customer, 1 + (zone & 3));
        if (!count) {
#if BUG == 7
            if (zone > 128)
                sum ^= 1; /* BUG 7 */
#endif
            continue;
        }
        amount -= discount(amount, customer);
#if BUG == 8
        if (amount == 0)
            amount = zone + 1; /* BUG 8 */
#endif
        sum = checked(sum, amount + shipping(amount, zone) - customer);
    }
    result = sum;
    return 0;
}
