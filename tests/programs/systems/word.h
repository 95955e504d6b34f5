/* Loads and stores of registers, for assembly of both widths. */
#if __riscv_xlen == 64
#define STORE sd
#define LOAD ld
#else
#define STORE sw
#define LOAD lw
#endif
#define WORD (__riscv_xlen / 8)
