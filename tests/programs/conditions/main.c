/* Decisions of several conditions: compiled for the target and, instrumented, for this machine. */
static int finish(int value) { return value & 7; }
volatile int r[16];
int f1(int a, int b) { if (a && b) return 1; return 0; }
int f2(int a, int b, int c) { if ((a || b) && c) return 1; return 0; }
int f3(int a, int b) { if (a) if (b) return 1; return 0; }
int f4(int a, int b, int c) { int x = a && (b || !c); return x; }
int f5(int a, int b, int c)
{
    while (a > 0 &&
           (b < 3 ||
            c))
        a--, b++;
    return a ? b : c;
}
int f6(int a, int b) { return a > 1 && b > 1 ? 3 : 4; }
int f7(int a, int b) { for (int i = 0; i < 5 && b != i; i++) r[0]++; return a || b; }
int f8(int a, int b) { if (!(a && b) || f6(a, b) == 3) return 5; return 6; }
int f9(int a, int b) { int x = !(a && b); return x + 2; }
int f10(int a, int b) { return ((a > 1 && b < 9)) ? 1 : 0; }
int f11(int c)
{
    switch (c) {
    case 1: case 2: return c && r[2] ? (c > 1 || r[3] ? 5 : 6) : 7;
    default: return (c > 4 && c < 9 && (c != 7 || r[1])) || (c == 3 && !(c & 4));
    }
}
int main(void)
{
    r[1] = f1(1, 1) + f1(0, 1);
    r[2] = f2(1, 0, 1) + f2(0, 0, 1) + f2(0, 1, 0);
    r[3] = f3(1, 1) + f3(0, 1);
    r[4] = f4(1, 1, 0) + f4(0, 1, 0) + f4(1, 0, 1);
    r[5] = f5(4, 0, 0);
    r[6] = f6(1, 1) + f6(2, 2);
    r[7] = f7(1, 3) + f7(0, 0);
    r[8] = f8(1, 1) + f8(2, 2) + f8(0, 0);
    r[9] = f9(1, 1) + f9(0, 1) + f10(2, 3) + f10(2, 9) + f10(0, 9);
    r[10] = f11(1) + f11(2) + f11(3) + f11(5) + f11(7) + f11(20);
    return finish(3);
}
