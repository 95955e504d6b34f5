/* Floating point decides what runs. */
volatile double total;
volatile float small = 1.5f;
volatile int limit = 9;

double __attribute__((noinline)) half(double x) { return x / 2 + small; }

void __attribute__((noinline)) finish(void) { for (;;) ; }

int main(void)
{
    __asm__ volatile("csrs mstatus, %0" ::"r"(1 << 13));
    double x = 100;
    for (int n = 0; n < limit; n++) {
        x = half(x);
        if (x > 7.5)
            total += x;
        else
            total -= (float)x * 3;
    }
    finish();
}
