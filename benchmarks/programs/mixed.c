/* What embedded programs do all day: a linked list searched, sorted and reversed, small matrices, text parsed by a state
   machine, checksums. The work is the same in every round but for what the round before left behind, as in the CoreMark
   benchmark, none of whose code is used here. */

#include <stdint.h>

#define NODES 40
#define SIZE 16
#define TEXT 800

struct node {
    struct node *next;
    int16_t value, key;
};

static struct node nodes[NODES];
static int16_t a[SIZE][SIZE], b[SIZE][SIZE];
static int32_t product[SIZE][SIZE];
static char text[TEXT];
#ifdef ROUNDS /* values/mixed.c: it ends, and has the result of all programs there */
extern volatile uint32_t result;
#else
#define ROUNDS 0 /* for ever */
volatile uint32_t result;
#endif

static uint16_t checksum(uint16_t sum, uint32_t value, int bits)
{
    for (int i = 0; i < bits; i++, value >>= 1) {
        int low = (sum ^ value) & 1;
        sum >>= 1;
        if (low)
            sum ^= 0xa001;
    }
    return sum;
}

static int by_key(const struct node *x, const struct node *y) { return x->key - y->key; }

static int by_value(const struct node *x, const struct node *y)
{
    return (checksum(0, (uint16_t)x->value, 8) & 0xff) - (checksum(0, (uint16_t)y->value, 8) & 0xff);
}

static struct node *merge(struct node *x, struct node *y, int (*order)(const struct node *, const struct node *))
{
    struct node head = {0}, *last = &head;
    while (x && y) {
        struct node **from = order(x, y) <= 0 ? &x : &y;
        last = last->next = *from;
        *from = last->next;
    }
    last->next = x ? x : y;
    return head.next;
}

static struct node *sort(struct node *list, int length, int (*order)(const struct node *, const struct node *))
{
    if (length < 2) {
        if (list)
            list->next = 0;
        return list;
    }
    struct node *second = list;
    for (int i = 0; i < length / 2; i++)
        second = second->next;
    return merge(sort(list, length / 2, order), sort(second, length - length / 2, order), order);
}

static struct node *reverse(struct node *list)
{
    struct node *done = 0;
    while (list) {
        struct node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static struct node *find(struct node *list, int16_t value)
{
    while (list && list->value != value)
        list = list->next;
    return list;
}

static uint16_t lists(uint16_t seed)
{
    struct node *list = &nodes[0];
    for (int i = 0; i < NODES; i++) {
        nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : 0;
        nodes[i].value = (int16_t)((i * 37 + (seed & 127)) % 64);
        nodes[i].key = (int16_t)(i ^ 21);
    }
    uint16_t sum = seed;
    for (int i = 0; i < 24; i++) {
        struct node *found = find(list, (int16_t)(i * 5 % 70));
        list = reverse(list);
        if (found)
            sum = checksum(sum, (uint16_t)found->key, 16);
    }
    list = sort(list, NODES, by_value);
    list = sort(list, NODES, by_key);
    return checksum(sum, (uint16_t)list->value, 16);
}

static uint16_t matrices(uint16_t seed)
{
    int32_t above = 0;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            a[i][j] = (int16_t)(i * j + 1);
            b[i][j] = (int16_t)(i - j + (seed & 31));
        }
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            product[i][j] = 0;
            for (int k = 0; k < SIZE; k++)
                product[i][j] += a[i][k] * b[k][j];
            if (product[i][j] > 100)
                above += 10;
            else
                above += product[i][j] > product[i][0];
        }
    return checksum(seed, (uint32_t)above, 16);
}

enum state { START, SIGN, INTEGER, FRACTION, EXPONENT, INVALID };

static enum state scan(const char **at)
{
    enum state state = START;
    for (; **at && **at != ','; ++*at) {
        char c = **at;
        switch (state) {
        case START:
            state = c == '+' || c == '-' ? SIGN : c >= '0' && c <= '9' ? INTEGER : c == '.' ? FRACTION : INVALID;
            break;
        case SIGN:
            state = c >= '0' && c <= '9' ? INTEGER : c == '.' ? FRACTION : INVALID;
            break;
        case INTEGER:
            state = c == '.' ? FRACTION : c == 'e' ? EXPONENT : c >= '0' && c <= '9' ? INTEGER : INVALID;
            break;
        case FRACTION:
            state = c == 'e' ? EXPONENT : c >= '0' && c <= '9' ? FRACTION : INVALID;
            break;
        case EXPONENT:
            state = c >= '0' && c <= '9' ? EXPONENT : INVALID;
            break;
        case INVALID:
            break;
        }
    }
    if (**at)
        ++*at;
    return state;
}

static uint16_t parse(uint16_t seed)
{
    static const char *const pieces[] = {"12", "-7.5", "+.25e3", "x1", "3e", "99999", "0.0.1", "-"};
    int counts[6] = {0}, filled = 0;
    for (int i = 0; filled < TEXT - 10; i++) {
        for (const char *c = pieces[(i + (seed & 3)) & 7]; *c; c++)
            text[filled++] = *c;
        text[filled++] = ',';
    }
    text[filled] = 0;
    for (const char *at = text; *at;)
        counts[scan(&at)]++;
    for (int i = 0; i < 6; i++)
        seed = checksum(seed, (uint32_t)counts[i], 8);
    return seed;
}

int main(void)
{
    uint16_t sum = 0;
    for (uint32_t round = 0; !ROUNDS || round < ROUNDS; round++) {
        sum = lists((uint16_t)(sum + round));
        sum = matrices(sum);
        sum = parse(sum);
        result = sum ^ round;
    }
    return 0;
}
