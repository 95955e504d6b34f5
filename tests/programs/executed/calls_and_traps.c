/* Deep and mutual recursion, calls through pointers, a jump table, exceptions in M and U mode. Deterministic: Spike and
 * QEMU execute the same instructions of it. */
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 6
#endif

typedef unsigned (*operation)(unsigned, unsigned);

volatile unsigned result;

/* Goes on behind the instruction that trapped; an ecall from U mode also brings back M mode. */
__attribute__((naked, aligned(4))) static void handler(void) {
    __asm__ volatile(
        "addi sp, sp, -16\n"
        "sw t0, 0(sp)\n"
        "sw t1, 8(sp)\n"
        "csrr t0, mepc\n"
        "lhu t1, 0(t0)\n"
        "andi t1, t1, 3\n"
        "addi t1, t1, -3\n"
        "addi t0, t0, 2\n"
        "bnez t1, 1f\n"
        "addi t0, t0, 2\n"
        "1: csrw mepc, t0\n"
        "csrr t0, mcause\n"
        "li t1, 8\n"
        "bne t0, t1, 2f\n"
        "li t1, 0x1800\n"
        "csrs mstatus, t1\n"
        "2: lw t1, 8(sp)\n"
        "lw t0, 0(sp)\n"
        "addi sp, sp, 16\n"
        "mret\n");
}

static unsigned add(unsigned a, unsigned b) { return a + b; }
static unsigned mix(unsigned a, unsigned b) { return (a << 5 | a >> 27) ^ b; }
static unsigned pick(unsigned a, unsigned b) { return a < b ? b : a; }
static const operation operations[] = {add, mix, pick};

static unsigned odd(unsigned n);
__attribute__((noinline)) static unsigned even(unsigned n) { return n == 0 ? 1 : odd(n - 1) ^ (n & 4); }
__attribute__((noinline)) static unsigned odd(unsigned n) { return n == 0 ? 0 : even(n - 1) + 1; }

static unsigned ackermann(unsigned m, unsigned n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__attribute__((noinline)) static unsigned selected(unsigned n) {
    switch (n % 8) {
    case 0: return n;
    case 1: return n * 7;
    case 2: return n ^ 0x5a5a;
    case 3: return n - 12345;
    case 4: return ~n;
    case 5: return n >> 3;
    case 6: return n & 0xff0;
    default: return n | 1;
    }
}

__attribute__((noinline)) static void exceptions(void) {
    __asm__ volatile("ecall");
    __asm__ volatile("ebreak");
    __asm__ volatile(".half 0");
    __asm__ volatile("lw t0, 16(zero)" ::: "t0");
    __asm__ volatile("csrw cycle, zero");
}

__attribute__((noinline)) static void in_user_mode(void) {
    uintptr_t mpp = 0x1800;
    __asm__ volatile(
        "csrc mstatus, %0\n"
        "la t0, 1f\n"
        "csrw mepc, t0\n"
        "mret\n"
        "1: nop\n"
        "csrr t0, mstatus\n"
        "lw t0, 16(zero)\n"
        "ecall\n" ::"r"(mpp)
        : "t0", "memory");
}

int main(void) {
    __asm__ volatile("csrw mtvec, %0" ::"r"(handler));
    unsigned value = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 40; i++) value = operations[(value + i) % 3](value, i * 77) + selected(value >> 4);
        value += even(round * 9 + 3) + ackermann(2, round & 3);
        exceptions();
        in_user_mode();
    }
    result = value;
    return 0;
}
