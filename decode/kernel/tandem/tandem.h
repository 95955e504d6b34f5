/* Groups of a tandem trace: where they begin, what plain ones do, and the paths of their instructions. See tandem.c. */
#ifndef RVTRACE_TANDEM_H
#define RVTRACE_TANDEM_H

#include "loop.h"

/* What decode/tandem/group_grammar.py says of a byte in a node: see `GrammarEntry` there. `key` is node << 8 | byte,
 * plus one: 0 is an empty slot. */
typedef struct {
    uint32_t key, size, node;
    uint16_t split, shape; /* NO_SHAPE: the group goes on */
} GrammarSlot;

#define NO_SHAPE 0xffff

typedef struct {
    GrammarSlot *slots;
    size_t mask, used;
    uint64_t *offsets; /* of the groups that were read since they were taken away */
    Amount offset_amount;
    uint16_t *shapes;
    Amount shape_amount;
} GroupReader;

enum Reading { READ_ALL, NEW_BYTE, READ_NO_MEMORY };

/* Where a reader is: the element at `at`, in `node`, of the group that begins at `start`. `miss_node` and `miss_byte`:
 * what is not known. */
typedef struct {
    size_t at, start;
    uint32_t node, miss_node, miss_byte;
} ReadPlace;

int reader_init(GroupReader *reader);
void reader_free(GroupReader *reader);
int reader_learn(GroupReader *reader, uint32_t node, uint32_t byte, uint32_t size, uint32_t next, uint16_t split,
                 uint16_t shape);
enum Reading reader_run(GroupReader *reader, const uint8_t *data, size_t length, ReadPlace *place);

/* Where the fields of a plain group are, from its first byte on, and their bytes: `UnpackPlan` in Python. */
typedef struct {
    uint16_t number_at, value_at, value_bytes;
} PlanRegister;

#define PLAN_REGISTERS 40
#define REGISTERS 0x1040

typedef struct {
    uint8_t plain, full_pc, pc_bytes, length, data_bytes, address_bytes, physical, both;
    uint16_t size, pc_at, word_at, address_at, data_at, register_count;
    PlanRegister registers[PLAN_REGISTERS];
} GroupPlan;

enum { SPECIAL_REGISTER = 1, STATUS_REGISTER = 2, FLOATING_REGISTER = 4 };
enum { ANYWHERE = 1, PYTHON_STORE = 2 };

/* How far an instruction leads, and how many bytes it stores. `distances`: `count` of them, or any even one. */
typedef struct {
    uint64_t distances[2];
    uint32_t word;
    int8_t stored;
    uint8_t used, count, flags;
} WordFacts;

typedef struct {
    uint64_t pc;
    WordFacts facts;
} CodeSlot;

typedef struct {
    uint32_t *groups;
    uint64_t *values;
    Amount group_amount, value_amount;
} WriteColumn;

typedef struct {
    uint32_t *groups;
    uint64_t *addresses, *values;
    uint8_t *sizes;
    Amount group_amount, address_amount, value_amount, size_amount;
} StoreColumns;

typedef struct {
    uint64_t pc;
    uint32_t word;
} RanCode;

typedef struct {
    uint64_t mask, mprv, lowest; /* of a pc; of a value; Python does what is at lower addresses */
    uint8_t kinds[REGISTERS];
    GroupPlan *plans;
    Amount plan_amount;
    WordFacts *words;
    size_t word_mask, word_used;
    CodeSlot *code;
    size_t code_mask, code_used;
    /* What groups did since it was taken away. */
    uint64_t *pcs;
    Amount pc_amount;
    uint32_t *dirty;
    Amount dirty_amount;
    RanCode *ran;
    Amount ran_amount;
    WriteColumn columns[REGISTERS];
    uint16_t touched[REGISTERS];
    size_t touched_count;
    StoreColumns stores[2]; /* to the space of loads and stores, and to physical memory */
} GroupIndexer;

enum Indexing { INDEXED, FOR_PYTHON, NEW_WORD, INDEX_NO_MEMORY };

typedef struct {
    const uint8_t *data;
    size_t length;
    const uint64_t *offsets;
    const uint16_t *shapes;
    uint32_t stop;
    int mprv, in_physical; /* mstatus has MPRV, or may have; the space of loads and stores is physical memory */
    uint32_t group;
    uint64_t pc;
    uint32_t word; /* that is not known */
} IndexPlace;

int indexer_init(GroupIndexer *indexer);
void indexer_free(GroupIndexer *indexer);
int indexer_word(GroupIndexer *indexer, WordFacts facts);
void indexer_forget(GroupIndexer *indexer);
enum Indexing indexer_run(GroupIndexer *indexer, IndexPlace *place);

/* Blocks of consecutive addresses, each with a number. */
typedef struct {
    size_t begin; /* in `addresses` */
    uint32_t count, number; /* plus one; 0 is an empty slot */
} BlockSlot;

typedef struct {
    BlockSlot *slots;
    size_t mask;
    uint32_t used;
    uint64_t *addresses;
    Amount address_amount;
    uint32_t *numbers; /* of the blocks of the last run */
    Amount number_amount;
    uint32_t *fresh; /* where the blocks that came for the first time begin and end there */
    Amount fresh_amount;
} BlockTable;

int blocks_init(BlockTable *table);
void blocks_free(BlockTable *table);
int blocks_cut(BlockTable *table, const uint64_t *pcs, size_t count, size_t longest);

#endif
