/* A device writes to memory: QEMU's fw_cfg, told by its DMA register, reads item 0, "QEMU", into a buffer. QEMU's
 * documentation, "QEMU Firmware Configuration (fw_cfg) Device"; on the machine `virt` it is at 0x10100000. */
#include <stdint.h>

#define FW_CFG_DMA ((volatile uint32_t *)0x10100010)
#define FINISHER (*(volatile uint32_t *)0x100000)
#define SELECT_AND_READ (0u << 16 | 8 | 2)

/* big-endian */
struct access {
    uint32_t control, length;
    uint64_t address;
};

/* not in .bss: what the program file has there is known from the beginning */
__attribute__((aligned(4096))) volatile struct {
    struct access access;
    uint8_t buffer[4080];
} written = {.buffer = {1, 1, 1, 1}};
__attribute__((aligned(4096))) volatile uint32_t sum;

static uint32_t big(uint32_t value)
{
    return value >> 24 | (value >> 8 & 0xff00) | (value << 8 & 0xff0000) | value << 24;
}

__attribute__((noinline)) void finish(void) { FINISHER = 0x5555; }

int main(void)
{
    written.access.length = big(4);
    written.access.address = (uint64_t)big((uintptr_t)written.buffer) << 32;
    written.access.control = big(SELECT_AND_READ);
    FW_CFG_DMA[0] = 0;
    FW_CFG_DMA[1] = big((uintptr_t)&written.access);
    while (written.access.control) { /* cleared when it is done */
    }
    for (int i = 0; i < 4; i++)
        sum += written.buffer[i] << i;
    finish();
    for (;;) {
    }
}
