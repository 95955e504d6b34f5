/* What `trace who-wrote` is asked about: globals, members, bit-fields, elements, locals in registers and on the stack. */

struct node {
    struct node *next;
    int value;
};

volatile int counter;
int array[8];
struct node first, second;
struct {
    unsigned low : 3, high : 5;
} bits;

__attribute__((noinline)) static int bump(int by, struct node *node)
{
    volatile int local[4];
    int sum = 0;
    for (int i = 0; i < by; i++) {
        counter++;
        local[i & 3] = counter;
        sum += local[i & 3];
    }
    node->value = sum;
    bits.high = by;
    return sum;
}

__attribute__((noinline)) void finish(int result) { array[2] = result; }

int main(void)
{
    int total = 0;
    first.next = &second;
    for (int k = 1; k < 4; k++)
        total += bump(k, first.next);
    finish(total);
    return 0;
}
