/* A hart's loop, see hart.h. */
#include "hart.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024 /* a power of two */
/* A block is Python's for ever when it was undone so often, and in one of so many runs. */
#define UNDONE_OFTEN 16
#define UNDONE_SHARE 8

/* Blocks */

int hart_init(HartLoop *loop)
{
    loop->slot_count = FIRST_SLOTS;
    loop->slots = calloc(FIRST_SLOTS, sizeof *loop->slots);
    return loop->slots ? 0 : -1;
}

void hart_free(HartLoop *loop)
{
    free(loop->operations);
    free(loop->blocks);
    free(loop->slots);
}

void hart_forget(HartLoop *loop)
{
    memset(loop->slots, 0, loop->slot_count * sizeof *loop->slots);
    loop->block_count = loop->operation_count = 0;
}

/* Where the number of the block at pc is, or would be. */
static size_t slot_of(const HartLoop *loop, uint64_t pc)
{
    size_t mask = loop->slot_count - 1, at = (size_t)((pc >> 1) * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (loop->slots[at] && loop->blocks[loop->slots[at] - 1].pc != pc)
        at = (at + 1) & mask;
    return at;
}

CodeBlock *hart_block_at(const HartLoop *loop, uint64_t pc)
{
    uint32_t number = loop->slots[slot_of(loop, pc)];
    return number ? &loop->blocks[number - 1] : NULL;
}

static int more_slots(HartLoop *loop)
{
    uint32_t *slots = calloc(2 * loop->slot_count, sizeof *slots);
    if (!slots)
        return -1;
    free(loop->slots);
    loop->slots = slots;
    loop->slot_count *= 2;
    for (size_t number = 0; number < loop->block_count; number++)
        slots[slot_of(loop, loop->blocks[number].pc)] = (uint32_t)number + 1;
    return 0;
}

/* Make room for `more` items after `count`. */
static int reserve(void **items, size_t *capacity, size_t count, size_t more, size_t size)
{
    if (count + more <= *capacity)
        return 0;
    size_t wanted = 2 * (count + more) + 256;
    void *moved = realloc(*items, wanted * size);
    if (!moved)
        return -1;
    *items = moved;
    *capacity = wanted;
    return 0;
}

static uint64_t bit_of(uint32_t x) { return x < REGISTERS ? (uint64_t)1 << x : 0; }

static void note_registers(CodeBlock *block, const CodeOperation *operations)
{
    for (size_t i = 0; i < block->count; i++) {
        block->reads |= (bit_of(operations[i].rs1) | bit_of(operations[i].rs2)) & ~block->writes;
        block->writes |= bit_of(operations[i].rd);
    }
}

int hart_add(HartLoop *loop, CodeBlock block, const CodeOperation *operations)
{
    note_registers(&block, operations);
    void *blocks = loop->blocks, *kept = loop->operations;
    int failed = reserve(&blocks, &loop->block_capacity, loop->block_count, 1, sizeof block);
    loop->blocks = blocks;
    failed |= reserve(&kept, &loop->operation_capacity, loop->operation_count, block.count, sizeof *operations);
    loop->operations = kept;
    if (failed || (2 * (loop->block_count + 1) > loop->slot_count && more_slots(loop)))
        return -1;
    block.first = loop->operation_count;
    memcpy(&loop->operations[block.first], operations, block.count * sizeof *operations);
    loop->operation_count += block.count;
    size_t slot = slot_of(loop, block.pc);
    loop->blocks[loop->block_count++] = block;
    loop->slots[slot] = (uint32_t)loop->block_count;
    return 0;
}

/* Memory. Addresses that are not aligned, or not of main memory, have a bit in common with the mask. */

static uint64_t offset_of(const HartLoop *loop, const CodeOperation *op)
{
    return ((loop->x[op->rs1] + op->immediate) & loop->address_mask) - loop->base;
}

static int is_elsewhere(const HartLoop *loop, uint64_t offset, uint32_t size)
{
    return (offset & (~(loop->size - 1) | (size - 1))) != 0;
}

static void put(uint8_t *at, uint32_t size, uint64_t value)
{
    uint32_t word = (uint32_t)value;
    uint16_t half = (uint16_t)value;
    switch (size) {
    case 1:
        *at = (uint8_t)value;
        break;
    case 2:
        memcpy(at, &half, sizeof half);
        break;
    case 4:
        memcpy(at, &word, sizeof word);
        break;
    default:
        memcpy(at, &value, sizeof value);
    }
}

static uint64_t got(const uint8_t *at, uint32_t size)
{
    uint64_t value;
    uint32_t word;
    uint16_t half;
    switch (size) {
    case 1:
        return *at;
    case 2:
        memcpy(&half, at, sizeof half);
        return half;
    case 4:
        memcpy(&word, at, sizeof word);
        return word;
    default:
        memcpy(&value, at, sizeof value);
        return value;
    }
}

/* The same mark for each byte of an access. */
static uint64_t all_bytes(enum Mark mark, uint32_t size) { return 0x0101010101010101u * mark >> (64 - 8 * size); }

static int is_known(const HartLoop *loop, uint64_t offset, uint32_t size)
{
    return !loop->marks || got(loop->marks + offset, size) == all_bytes(MARK_KNOWN, size);
}

static int load(HartLoop *loop, const CodeOperation *op, uint32_t size, uint64_t sign)
{
    uint64_t offset = offset_of(loop, op);
    if (is_elsewhere(loop, offset, size) || !is_known(loop, offset, size))
        return -1;
    loop->x[op->rd] = (got(loop->memory + offset, size) ^ sign) - sign;
    return 0;
}

/* Mark what is stored to. -1: Python has not looked at some byte yet. */
static int mark(HartLoop *loop, uint64_t offset, uint32_t size, uint64_t *before)
{
    if (!loop->marks)
        return 0;
    uint8_t *marks = loop->marks + offset;
    for (uint32_t i = 0; i < size; i++)
        if (marks[i] == MARK_UNSEEN)
            return -1;
    *before = got(marks, size);
    put(marks, size, all_bytes(MARK_KNOWN, size));
    return 0;
}

static int store(HartLoop *loop, const CodeOperation *op, uint32_t size)
{
    uint64_t offset = offset_of(loop, op);
    uint64_t marks = 0;
    if (is_elsewhere(loop, offset, size) || offset == loop->tohost || mark(loop, offset, size, &marks))
        return -1;
    uint8_t *at = loop->memory + offset;
    loop->stores[loop->store_count++] = (UndoneStore){offset, got(at, size), marks, size};
    put(at, size, loop->x[op->rs2]);
    return 0;
}

/* Operations */

static uint64_t word(uint64_t value) { return (uint64_t)(int64_t)(int32_t)(uint32_t)value; }

static uint64_t arithmetic_shift(uint64_t value, uint32_t count)
{
    return (int64_t)value < 0 ? ~(~value >> count) : value >> count;
}

/* The upper half of the product of unsigned numbers. */
static uint64_t upper_product(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

static uint64_t if_negative(uint64_t a, uint64_t b) { return (int64_t)a < 0 ? b : 0; }

/* Division: by zero, and the overflow of the least number divided by -1, as the ISA manual says (13.2). */

static uint64_t quotient(uint64_t a, uint64_t b)
{
    if (!b)
        return UINT64_MAX;
    return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(uint64_t a, uint64_t b)
{
    if (!b)
        return a;
    return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
}

#define DO(name, value)                                                                                                \
    case HART_##name:                                                                                                  \
        x[op->rd] = (value);                                                                                           \
        break;
#define LOAD(name, size, sign)                                                                                         \
    case HART_##name:                                                                                                  \
        if (load(loop, op, size, sign))                                                                                \
            return -1;                                                                                                 \
        break;
#define STORE(name, size)                                                                                              \
    case HART_##name:                                                                                                  \
        if (store(loop, op, size))                                                                                     \
            return -1;                                                                                                 \
        break;
#define BRANCH_IF(name, condition)                                                                                     \
    case HART_##name:                                                                                                  \
        *next = (condition) ? i : block->end;                                                                          \
        break;

/* Execute the operations of a block. -1: one of them is Python's. */
static int execute(HartLoop *loop, const CodeBlock *block, uint64_t *next)
{
    uint64_t *x = loop->x;
    const CodeOperation *op = &loop->operations[block->first], *end = op + block->count;
    *next = block->end;
    for (; op < end; op++) {
        uint64_t a = x[op->rs1], b = x[op->rs2], i = op->immediate;
        uint32_t a32 = (uint32_t)a, b32 = (uint32_t)b;
        switch (op->operation) {
            DO(LI, i)
            DO(ADDI, a + i)
            DO(SLTI, (int64_t)a < (int64_t)i)
            DO(SLTIU, a < i)
            DO(XORI, a ^ i)
            DO(ORI, a | i)
            DO(ANDI, a & i)
            DO(SLLI, a << (i & 63))
            DO(SRLI, a >> (i & 63))
            DO(SRAI, arithmetic_shift(a, i & 63))
            DO(ADD, a + b)
            DO(SUB, a - b)
            DO(SLL, a << (b & 63))
            DO(SLT, (int64_t)a < (int64_t)b)
            DO(SLTU, a < b)
            DO(XOR, a ^ b)
            DO(SRL, a >> (b & 63))
            DO(SRA, arithmetic_shift(a, b & 63))
            DO(OR, a | b)
            DO(AND, a & b)
            DO(ADDIW, word(a + i))
            DO(SLLIW, word(a << (i & 31)))
            DO(SRLIW, word(a32 >> (i & 31)))
            DO(SRAIW, arithmetic_shift(word(a), i & 31))
            DO(ADDW, word(a + b))
            DO(SUBW, word(a - b))
            DO(SLLW, word(a << (b & 31)))
            DO(SRLW, word(a32 >> (b & 31)))
            DO(SRAW, arithmetic_shift(word(a), b & 31))
            DO(MUL, a * b)
            DO(MULH, upper_product(a, b) - if_negative(a, b) - if_negative(b, a))
            DO(MULHSU, upper_product(a, b) - if_negative(a, b))
            DO(MULHU, upper_product(a, b))
            DO(DIV, quotient(a, b))
            DO(DIVU, b ? a / b : UINT64_MAX)
            DO(REM, remainder_of(a, b))
            DO(REMU, b ? a % b : a)
            DO(MULW, word(a * b))
            DO(MULHW, arithmetic_shift(word(a) * word(b), 32))
            DO(MULHSUW, arithmetic_shift(word(a) * b32, 32))
            DO(MULHUW, word((uint64_t)a32 * b32 >> 32))
            DO(DIVW, word(quotient(word(a), word(b))))
            DO(DIVUW, b32 ? word(a32 / b32) : UINT64_MAX)
            DO(REMW, word(remainder_of(word(a), word(b))))
            DO(REMUW, word(b32 ? a32 % b32 : a32))
            LOAD(LB, 1, 1u << 7)
            LOAD(LH, 2, 1u << 15)
            LOAD(LW, 4, 1u << 31)
            LOAD(LD, 8, 0)
            LOAD(LBU, 1, 0)
            LOAD(LHU, 2, 0)
            LOAD(LWU, 4, 0)
            STORE(SB, 1)
            STORE(SH, 2)
            STORE(SW, 4)
            STORE(SD, 8)
            BRANCH_IF(BEQ, a == b)
            BRANCH_IF(BNE, a != b)
            BRANCH_IF(BLT, (int64_t)a < (int64_t)b)
            BRANCH_IF(BGE, (int64_t)a >= (int64_t)b)
            BRANCH_IF(BLTU, a < b)
            BRANCH_IF(BGEU, a >= b)
        case HART_JAL:
            x[op->rd] = loop->is_rv32 ? word(block->end) : block->end;
            *next = i;
            break;
        case HART_JALR:
            *next = (a + i) & loop->address_mask & ~(uint64_t)1;
            if (*next & loop->odd)
                return -1;
            x[op->rd] = loop->is_rv32 ? word(block->end) : block->end;
            break;
        default:
            return -1;
        }
    }
    return 0;
}

static enum HartStop undo(HartLoop *loop, CodeBlock *block, const uint64_t *before)
{
    memcpy(loop->x, before, sizeof loop->x);
    while (loop->store_count) {
        const UndoneStore *last = &loop->stores[--loop->store_count];
        put(loop->memory + last->offset, last->size, last->before);
        if (loop->marks)
            put(loop->marks + last->offset, last->size, last->marks);
    }
    if (loop->marks)  /* what was unknown may be known the next time */
        return LEFT;
    block->undone++;
    return block->undone >= UNDONE_OFTEN && block->undone * UNDONE_SHARE > block->runs ? LEFT_EVER : LEFT;
}

enum HartStop hart_execute(HartLoop *loop, CodeBlock *block, uint64_t *next)
{
    uint64_t before[REGISTERS + 1];
    if (block->undone == UINT64_MAX)
        return LEFT_EVER;
    if (loop->unknown & block->reads)
        return LEFT;
    memcpy(before, loop->x, sizeof before);
    loop->store_count = 0;
    block->runs++;
    if (!execute(loop, block, next)) {
        loop->unknown &= ~block->writes;
        return WENT_ON;
    }
    enum HartStop stop = undo(loop, block, before);
    if (stop == LEFT_EVER)
        block->undone = UINT64_MAX;
    return stop;
}
