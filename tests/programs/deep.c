/* A recursion of many frames, again and again. `bottom` is where it turns round; with `forever` it stays in main. */
volatile unsigned result, forever;

__attribute__((noinline)) void bottom(void) {
    result++;
}

__attribute__((noinline)) unsigned deep(unsigned n) {
    if (n == 0) {
        bottom();
        return 1;
    }
    unsigned below = deep(n - 1);
    result += below;
    return below + n;
}

int main(void) {
    for (;;) {
        result = deep(60);
        while (forever)
            ;
    }
}
