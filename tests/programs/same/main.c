/* Functions that have their names more than once: static ones in several files, and one that is inlined, too. */
void first(void), second(void);
volatile int state;

static inline void step(void) {
    state += 3;
}

void (*volatile out_of_line)(void) = step;

__attribute__((noipa)) void finish(void) {
    for (;;)
        ;
}

int main(void) {
    first();
    step();
    second();
    out_of_line();
    first();
    finish();
}
