extern volatile int state;

__attribute__((noinline)) static void init(void) {
    state++;
}

void first(void) {
    init();
}
