/* A switch of which compilers make a jump through a table, with holes, a shared case, and one that falls through. */
volatile int results[2];

__attribute__((noinline)) int dense(unsigned code, int value)
{
    switch (code) {
    case 3:
        return value + 1;
    case 4:
        value *= 3;
        break;
    case 5:
    case 6:
        value -= 9;
#ifdef FAR /* farther than a conditional branch can go */
        __asm__ volatile(".rept 3000\n nop\n .endr");
#endif
        break;
    case 8:
        value ^= 5;
    case 9:
        value += 2;
        break;
    case 11:
        return -value;
    case 12:
        value |= 64;
        break;
    default:
        return 0;
    }
    return value * 2;
}

int before(int rounds)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += i * i;
    return sum;
}

int main(void)
{
    results[0] = before(9);
    for (unsigned i = 1; i < 11; i++)
        results[1] += dense(i, 2 * i) + dense(5, 1);
    return 0;
}
