/* A bit of everything compiled code does: linked lists, calls through pointers, a jump table, recursion, tables,
 * multiplication and division, bytes and halfwords, and floating point where there is any. */
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 2
#endif

struct node { struct node *next; int16_t key; uint8_t tag; };
typedef int (*compare)(const struct node *, const struct node *);

static struct node pool[48];
static uint32_t state = 12345;
static int16_t a[8][8], b[8][8];
volatile uint64_t result;

static uint32_t random_word(void) {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static int by_key(const struct node *x, const struct node *y) { return x->key - y->key; }
static int by_tag(const struct node *x, const struct node *y) { return (int)x->tag - (int)y->tag; }

static struct node *sorted(struct node *list, compare order) {
    struct node *out = 0;
    while (list) {
        struct node *next = list->next, **place = &out;
        while (*place && order(*place, list) <= 0) place = &(*place)->next;
        list->next = *place;
        *place = list;
        list = next;
    }
    return out;
}

static uint64_t mixed(const struct node *list) {
    uint64_t sum = 0;
    for (; list; list = list->next) sum = (sum << 7 | sum >> 57) ^ (uint64_t)(list->key * 31 + list->tag);
    return sum;
}

static int64_t product(int k) {
    int64_t trace = 0;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            a[i][j] = (int16_t)(k + i * j);
            b[i][j] = (int16_t)(k ^ (i - j));
        }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            for (int l = 0; l < 8; l++) trace += (int32_t)a[i][l] * b[l][j] % (l + 3);
    return trace;
}

static int tokens(const char *text) {
    int count = 0;
    for (; *text; text++)
        switch (*text) {
        case 'a': count += 1; break;
        case 'b': count ^= 3; break;
        case 'c': count -= 2; break;
        case 'd': count *= 5; break;
        case 'e': count /= 3; break;
        case 'f': count += 70; break;
        case 'g': count <<= 1; break;
        default: count = -count;
        }
    return count;
}

static unsigned ackermann(unsigned m, unsigned n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

#ifdef __riscv_flen
static uint64_t floating(int k) {
    double x = k + 0.5;
    float y = (float)k / 3;
    uint64_t sum = 0;
    for (int i = 1; i < 12; i++) {
        x = x * 1.75 - y / i;
        y = y * y - (float)x;
        if (y > 1e9f || y < -1e9f) y = 1.25f;
        sum += (uint64_t)(int64_t)x + (y < x);
    }
    return sum;
}
#else
static uint64_t floating(int k) { return k; }
#endif

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        struct node *list = 0;
        for (int i = 0; i < 48; i++) {
            pool[i].key = (int16_t)random_word();
            pool[i].tag = (uint8_t)random_word();
            pool[i].next = list;
            list = &pool[i];
        }
        list = sorted(list, by_key);
        result += mixed(list);
        result ^= mixed(sorted(list, by_tag));
        result += product(round) + tokens("abcdefgabdxcfe") + ackermann(2, 3);
        result ^= floating(round) / (round + 1);
    }
    return 0;
}
