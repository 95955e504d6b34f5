/* It begins with a loop. */
__attribute__((naked, noipa)) static void init(int rounds) {
    __asm__("1: addi a0, a0, -1\n bgtz a0, 1b\n ret");
}

void second(void) {
    init(3);
    init(1);
    init(2);
}
