/* An instruction is replaced by a branch, and back: the ELF then says something else than what ran. */
#include <stdint.h>

#define NOP 0x00000013
#define BEQZ_A0_8 0x00050463

extern uint32_t patch[];
unsigned patched(unsigned n);
volatile unsigned sink;

__asm__(".text\n.option push\n.option norvc\n.balign 4\n"
        ".globl patched, patch\n.type patched, @function\n"
        "patched: li a1, 1\npatch: nop\naddi a0, a0, 1\naddi a0, a0, 2\nret\n.option pop\n");

__attribute__((noinline)) void finish(void) { sink++; }

static void replace(uint32_t instruction)
{
    patch[0] = instruction;
    __asm__ volatile("fence.i" ::: "memory");
    for (unsigned i = 0; i < 3; i++)
        sink += patched(i);
}

int main(void)
{
    replace(NOP);
    replace(BEQZ_A0_8);
    replace(NOP);
    for (unsigned i = 0; i < 200; i++) /* long enough for a synchronizing message */
        sink += patched(i);
    finish();
    return 0;
}
