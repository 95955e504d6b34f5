static __attribute__((noinline)) int cl(int a, int *p, int c) { asm volatile("":::"memory"); return *p * c; }
int g(int x) { int y = x; return cl(1, &y, 5) + cl(2, &y, 5); }
int main() { return g(3) + g(4); }
