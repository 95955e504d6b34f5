/* Words of a text are cut out, turned round, counted, and their mean length is computed. */
#include "base.h"

#define LONGEST 12

static const char text[] = "the quick brown fox jumps over the lazy dog and runs away";
static char reversed[80];
static volatile int words;
static volatile int letters;
int means[8];

static void HANDLER on_trap(void)
{
    for (;;) {
    }
}

static APART unsigned length(const char *word)
{
    unsigned count = 0;
    while (word[count] && word[count] != ' ')
        count++;
    return count;
}

static APART void turn(char *word, unsigned count)
{
    for (unsigned i = 0; i < count / 2; i++) {
        char other = word[i];
        word[i] = word[count - 1 - i];
        word[count - 1 - i] = other;
    }
}

static APART unsigned put(char *to, const char *from, unsigned count)
{
    char word[LONGEST];
    for (unsigned i = 0; i < count; i++)
        word[i] = from[i];
    turn(word, count);
    for (unsigned i = 0; i < count; i++)
        to[i] = word[i];
    return count;
}

static APART int mean(int sum, int count)
{
    return sum * 10 / count;
}

static APART void all_words(void)
{
    const char *at = text;
    char *to = reversed;
    words = 0;
    letters = 0;
    while (*at) {
        unsigned count = length(at);
        to += put(to, at, count);
        words++;
        letters += count;
        at += count;
        if (*at)
            at++;
    }
}

int main(void)
{
    handle_traps(on_trap);
    for (int i = 0; i < 8; i++) {
        all_words();
        means[i] = mean(letters, words);
    }
    return means[0] & 1;
}
