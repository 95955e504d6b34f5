/* A hart's loop: blocks of integer instructions, executed one after the other until Python is needed.
 *
 * Python decodes the instructions, and executes everything that is not here, or that does more than compute and access
 * main memory: a block of which an access is anything else is undone, and left to Python as a whole. So traps, devices,
 * CSRs, triggers and interrupts are in Python alone.
 *
 * Of a hart that goes on from a place of the past some values are unknown: registers by a mask, memory by a mark for each
 * byte (`enum Mark`). A block that would read an unknown one is Python's, too.
 *
 * Registers have 64 bits. Those of RV32 are sign-extended to that, on which its operations are the word operations of
 * RV64: Python names these. */
#ifndef HART_H
#define HART_H

#include <stddef.h>
#include <stdint.h>

/* The operations, by their name in Python. `immediate` is the value, for a branch or jump the target; REGISTERS alone is
 * where a result goes that nobody reads. */
#define OPERATIONS(X)                                                                                                  \
    X(LI, "li") X(ADDI, "addi") X(SLTI, "slti") X(SLTIU, "sltiu") X(XORI, "xori") X(ORI, "ori") X(ANDI, "andi")        \
    X(SLLI, "slli") X(SRLI, "srli") X(SRAI, "srai") X(ADD, "add") X(SUB, "sub") X(SLL, "sll") X(SLT, "slt")            \
    X(SLTU, "sltu") X(XOR, "xor") X(SRL, "srl") X(SRA, "sra") X(OR, "or") X(AND, "and") X(ADDIW, "addiw")              \
    X(SLLIW, "slliw") X(SRLIW, "srliw") X(SRAIW, "sraiw") X(ADDW, "addw") X(SUBW, "subw") X(SLLW, "sllw")              \
    X(SRLW, "srlw") X(SRAW, "sraw") X(MUL, "mul") X(MULH, "mulh") X(MULHSU, "mulhsu") X(MULHU, "mulhu") X(DIV, "div")  \
    X(DIVU, "divu") X(REM, "rem") X(REMU, "remu") X(MULW, "mulw") X(MULHW, "mulhw") X(MULHSUW, "mulhsuw")              \
    X(MULHUW, "mulhuw") X(DIVW, "divw") X(DIVUW, "divuw") X(REMW, "remw") X(REMUW, "remuw") X(LB, "lb") X(LH, "lh")    \
    X(LW, "lw") X(LD, "ld") X(LBU, "lbu") X(LHU, "lhu") X(LWU, "lwu") X(SB, "sb") X(SH, "sh") X(SW, "sw") X(SD, "sd")  \
    X(BEQ, "beq") X(BNE, "bne") X(BLT, "blt") X(BGE, "bge") X(BLTU, "bltu") X(BGEU, "bgeu") X(JAL, "jal")              \
    X(JALR, "jalr")

#define OPERATION_NUMBER(number, name) HART_##number,
enum HartOperation { OPERATIONS(OPERATION_NUMBER) HART_OPERATIONS };

#define REGISTERS 32
#define MOST_OPERATIONS 64 /* of a block */

/* As Python packs them. */
typedef struct {
    uint8_t operation, rd, rs1, rs2;
    uint32_t unused;
    uint64_t immediate;
} CodeOperation;

typedef struct {
    uint64_t pc, end; /* address after it */
    size_t first;     /* of its operations */
    uint32_t count, instructions;
    uint64_t runs, undone;
    uint64_t reads, writes; /* masks of registers: that it reads as they are before it, that it writes */
} CodeBlock;

/* What is known of a byte of memory. */
enum Mark {
    MARK_UNSEEN,  /* Python has not put there yet what is known, or there is no memory */
    MARK_KNOWN,
    MARK_UNKNOWN
};

enum HartStop {
    WENT_ON,   /* as far as it was to go, or where no block is known */
    LEFT,      /* Python is to execute the block at pc */
    LEFT_EVER  /* and always, for it is often undone */
};

typedef struct {
    uint64_t offset, before, marks;
    uint32_t size;
} UndoneStore;

typedef struct {
    uint64_t x[REGISTERS + 1];
    uint64_t address_mask, base, size; /* of memory, `size` a power of two */
    uint64_t tohost;                   /* the offset at which a store is Python's, all ones: none */
    uint64_t odd;                      /* bits of an address at which there is no instruction */
    int is_rv32;
    uint64_t unknown; /* mask of the registers of which the value is unknown */
    uint8_t *memory, *marks; /* marks: NULL if all is known */
    CodeOperation *operations;
    size_t operation_count, operation_capacity;
    CodeBlock *blocks;
    size_t block_count, block_capacity;
    uint32_t *slots; /* of the blocks by pc: their numbers and 1, 0 if free */
    size_t slot_count;
    UndoneStore stores[MOST_OPERATIONS];
    size_t store_count; /* in the block that is executed */
} HartLoop;

/* 0, or -1 without memory */
int hart_init(HartLoop *loop);
void hart_free(HartLoop *loop);
void hart_forget(HartLoop *loop);
int hart_add(HartLoop *loop, CodeBlock block, const CodeOperation *operations);

/* NULL if none is known there. */
CodeBlock *hart_block_at(const HartLoop *loop, uint64_t pc);

/* Execute a block, and say where it goes on. LEFT, LEFT_EVER: nothing has changed. */
enum HartStop hart_execute(HartLoop *loop, CodeBlock *block, uint64_t *next);

#endif
