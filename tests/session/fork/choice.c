/* What runs depends on a variable, on a register that main passes on, and on nothing else. */
volatile unsigned limit = 5, total;

unsigned __attribute__((noinline)) mixed(unsigned value)
{
    return value & 1 ? value * 3 + 1 : value >> 1;
}

void __attribute__((noinline)) finish(void) { for (;;) ; }

int main(void)
{
    unsigned value = 7;
    for (unsigned n = 0; n < limit; n++) {
        value = mixed(value);
        total += value / 3;
    }
    finish();
}
