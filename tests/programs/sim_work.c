/* The benchmark's program, a mix as of real firmware: a linked list sorted through a function pointer, a matrix product,
   a state machine with a jump table, a checksum, recursion. Runs for ever. */
#include <stddef.h>
#include <stdint.h>

struct node { struct node *next; int16_t value, index; };
static struct node pool[48];
static uint32_t seed = 1;
volatile uint32_t result;

static uint32_t next_random(void) { return (seed = seed * 1103515245u + 12345u) >> 16; }

static uint16_t checksum(uint16_t sum, uint16_t word)
{
    for (int bit = 0; bit < 16; bit++, word >>= 1)
        sum = (sum ^ word) & 1 ? sum >> 1 ^ 0x8408 : sum >> 1;
    return sum;
}

static int by_value(const struct node *a, const struct node *b) { return a->value - b->value; }
static int by_index(const struct node *a, const struct node *b) { return a->index - b->index; }

static struct node *insert_sorted(struct node *list, int (*compare)(const struct node *, const struct node *))
{
    struct node *sorted = NULL;
    while (list) {
        struct node *one = list, **place = &sorted;
        list = list->next;
        while (*place && compare(*place, one) < 0)
            place = &(*place)->next;
        one->next = *place;
        *place = one;
    }
    return sorted;
}

static int32_t matrix(int size)
{
    static int32_t a[12][12], b[12][12];
    int32_t sum = 0;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            a[i][j] = i * j + size, b[i][j] = i ^ j;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            for (int k = 0; k < size; k++)
                sum += a[i][k] * b[k][j];
    return sum;
}

static int scan(const char *text)
{
    int state = 0, count = 0;
    for (; *text; text++) {
        switch (state) {
        case 0: state = *text == '-' ? 1 : *text == '.' ? 2 : *text == ' ' ? 0 : 3; break;
        case 1: state = *text == '.' ? 2 : 3; break;
        case 2: state = *text == 'e' ? 4 : *text == ' ' ? 0 : 2; break;
        case 3: state = *text == '.' ? 2 : *text == 'e' ? 4 : *text == ' ' ? 5 : 3; break;
        case 4: state = *text == ' ' ? 5 : 4; break;
        default: count++; state = 0; break;
        }
    }
    return count;
}

static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

int main(void)
{
    for (;;) {
        struct node *list = NULL;
        for (int i = 0; i < 48; i++) {
            pool[i] = (struct node){list, (int16_t)next_random(), (int16_t)i};
            list = &pool[i];
        }
        list = insert_sorted(list, by_value);
        uint16_t sum = checksum(0, list->value);
        list = insert_sorted(list, by_index);
        for (; list; list = list->next)
            sum = checksum(sum, list->value);
        sum = checksum(sum, matrix(10));
        sum = checksum(sum, scan("12 -3.4 5e6 .7 8.9e10 foo 1 2 3 -4 5.6 7e8 "));
        result = checksum(sum, fibonacci(9));
    }
}
