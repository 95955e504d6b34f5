/* Values of many types, in registers and in memory, and calls of many kinds: for `trace log` and `trace calls-of`. */
#include <stdint.h>
struct point { int x, y; };
enum color { RED, GREEN=5, BLUE };
enum flags { A=1, B=2, C=8 };
union u { int i; float f; char c[4]; };
struct node { struct node *next; int value; const char *name; struct point at; unsigned lo:3; int mid:5; unsigned hi:24; union u u; enum color color; enum flags flags; char buf[8]; double d; void (*call)(int); uint8_t bytes[4]; _Bool ok; };
struct node second = { 0, 5, "second", {1,2}, 5, -3, 77, {.f = 1.5f}, GREEN, A|C, "abc", 2.25, 0, {1,2,3,4}, 1};
struct node first = { &second, -7, "first", {3,-4}, 1, 2, 3, {.i=9}, 7, 16, "abcdefgh", 1.0/3, 0, {9,9,9,9}, 0};
static int counter;
int matrix[3][4];
int many[300];
char text[20] = "hello";
long long big = -5;
float ratio = 0.1f;
volatile int sink;
static int helper(int a, int b) { int sum = a + b; counter++; sink = sum; return sum * 2; }
static inline int mul(int a, int b){ int r = a*b; return r; }
static void take(int n) { sink = n; }
int fact(int n) { if (n < 2) return 1; return n * fact(n - 1); }
struct point make(int x, int y) { struct point p = {x, y}; sink=x; return p; }
struct node bignode(int v) { struct node n = first; n.value = v; return n; }
double half(double v) { sink = 1; return v / 2; }
float third(float v) { sink = 1; return v / 3; }
void tail2(int n) { sink = n; }
void tail1(int n) { sink = n+1; tail2(n); }
unsigned char low(int n) { sink = n; return n; }
enum color next_color(enum color c) { sink = c; return c == RED ? GREEN : BLUE; }
struct node *follow(struct node *p) { sink = p->value; return p->next; }
long long wide(long long a) { sink = 0; return a * 3; }
static int work(int rounds)
{
    int total = 0;
    unsigned char ch = 'x';
    struct node local = first;
    for (int i = 0; i < rounds; i++) {
        struct node *p = i & 1 ? &first : &second;
        total += helper(i, p->value);
        matrix[i % 3][i % 4] = mul(total, i);
        many[i] = total;
        text[i % 5]++;
        ratio *= 1.5f;
        big = big * 3 + i;
        local.value = i;
        total ^= ch;
    }
    return total;
}
void finish(void) { for (;;) sink++; }
int main(void)
{
    __asm__ volatile("csrs mstatus, %0" :: "r"(0x2000));
    second.call = take; first.call = tail2;
    sink = work(40);
    sink = fact(5);
    struct point p = make(3, 4);
    sink = p.x + p.y;
    struct node b = bignode(3);
    sink = b.value;
    sink = (int)half(3.0) + (int)third(2.0f);
    tail1(4);
    sink = low(300); sink = next_color(RED); sink = follow(&first) == &second; sink = wide(big);
    finish();
}
