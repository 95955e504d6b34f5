/* The loops over the groups of a tandem trace: cut them, note what plain ones did, and number the paths they ran.
 *
 * No layout of a group stands here: Python tells what a byte means (`reader_learn`), where the fields of a plain group
 * are (`GroupPlan`), and how far an instruction leads (`indexer_word`), each when it comes for the first time. What is
 * not plain, Python does itself. A field is read only where the whole group is in the data. */
#include "tandem.h"

#include <stdlib.h>

#define FIRST_TANDEM_SLOTS 1024
#define MOST_WORDS (1u << 16) /* whose facts are kept; then all are learnt again */
#define ROOM 4096
#define NOWHERE UINT64_MAX

static inline size_t scattered(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15ull;
    return (size_t)(key ^ key >> 32);
}

#define ADD(array, amount, value) \
    (array_reserve(&(array), &(amount), 1, sizeof *(array)) ? -1 : ((array)[(amount).count++] = (value), 0))

/* Cutting */

int reader_init(GroupReader *reader)
{
    reader->slots = calloc(FIRST_TANDEM_SLOTS, sizeof *reader->slots);
    reader->mask = FIRST_TANDEM_SLOTS - 1;
    return reader->slots ? 0 : -1;
}

void reader_free(GroupReader *reader)
{
    free(reader->slots);
    free(reader->offsets);
    free(reader->shapes);
}

static inline GrammarSlot *grammar_slot(const GroupReader *reader, uint32_t node, uint32_t byte)
{
    uint32_t key = (node << 8 | byte) + 1;
    for (size_t i = scattered(key);; i++) {
        GrammarSlot *slot = &reader->slots[i & reader->mask];
        if (slot->key == key || !slot->key)
            return slot;
    }
}

int reader_learn(GroupReader *reader, uint32_t node, uint32_t byte, uint32_t size, uint32_t next, uint16_t split,
                 uint16_t shape)
{
    if (2 * reader->used > reader->mask) {
        GroupReader larger = {.mask = 2 * reader->mask + 1};
        larger.slots = calloc(larger.mask + 1, sizeof *larger.slots);
        if (!larger.slots)
            return -1;
        for (size_t i = 0; i <= reader->mask; i++)
            if (reader->slots[i].key)
                *grammar_slot(&larger, (reader->slots[i].key - 1) >> 8, (reader->slots[i].key - 1) & 0xff) =
                    reader->slots[i];
        free(reader->slots);
        reader->slots = larger.slots;
        reader->mask = larger.mask;
    }
    GrammarSlot *slot = grammar_slot(reader, node, byte);
    reader->used += !slot->key;
    *slot = (GrammarSlot){(node << 8 | byte) + 1, size, next, split, shape};
    return 0;
}

enum Reading reader_run(GroupReader *reader, const uint8_t *data, size_t length, ReadPlace *place)
{
    size_t at = place->at, start = place->start;
    uint32_t node = place->node;
    enum Reading how = READ_ALL;
    while (at < length) {
        const GrammarSlot *entry = grammar_slot(reader, node, data[at]);
        uint32_t in = node, byte = data[at];
        while (entry->key && entry->split && at + entry->split < length) {
            in = entry->node;
            byte = data[at + entry->split];
            entry = grammar_slot(reader, in, byte);
        }
        if (!entry->key) {
            place->miss_node = in;
            place->miss_byte = byte;
            how = NEW_BYTE;
            break;
        }
        if (entry->split)
            break; /* the byte that decides is still to come */
        if (entry->shape != NO_SHAPE) {
            if (at + entry->size > length)
                break; /* an element outside of groups is not complete */
            if (ADD(reader->offsets, reader->offset_amount, start) ||
                ADD(reader->shapes, reader->shape_amount, entry->shape)) {
                how = READ_NO_MEMORY;
                break;
            }
            start = at + entry->size;
        }
        at += entry->size;
        node = entry->node;
    }
    place->at = at;
    place->start = start;
    place->node = node;
    return how;
}

/* Indexing */

int indexer_init(GroupIndexer *indexer)
{
    indexer->words = calloc(FIRST_TANDEM_SLOTS, sizeof *indexer->words);
    indexer->code = calloc(FIRST_TANDEM_SLOTS, sizeof *indexer->code);
    indexer->word_mask = indexer->code_mask = FIRST_TANDEM_SLOTS - 1;
    return indexer->words && indexer->code ? 0 : -1;
}

void indexer_free(GroupIndexer *indexer)
{
    free(indexer->plans);
    free(indexer->words);
    free(indexer->code);
    free(indexer->pcs);
    free(indexer->dirty);
    free(indexer->ran);
    for (size_t i = 0; i < REGISTERS; i++) {
        free(indexer->columns[i].groups);
        free(indexer->columns[i].values);
    }
    for (size_t i = 0; i < 2; i++) {
        free(indexer->stores[i].groups);
        free(indexer->stores[i].addresses);
        free(indexer->stores[i].values);
        free(indexer->stores[i].sizes);
    }
}

static inline WordFacts *word_slot(WordFacts *words, size_t mask, uint32_t word)
{
    for (size_t i = scattered(word);; i++)
        if (!words[i & mask].used || words[i & mask].word == word)
            return &words[i & mask];
}

static inline CodeSlot *code_slot(CodeSlot *code, size_t mask, uint64_t pc)
{
    for (size_t i = scattered(pc);; i++)
        if (!code[i & mask].facts.used || code[i & mask].pc == pc)
            return &code[i & mask];
}

int indexer_word(GroupIndexer *indexer, WordFacts facts)
{
    if (indexer->word_used == MOST_WORDS) {
        memset(indexer->words, 0, (indexer->word_mask + 1) * sizeof *indexer->words);
        indexer->word_used = 0;
    }
    if (2 * indexer->word_used > indexer->word_mask) {
        size_t mask = 2 * indexer->word_mask + 1;
        WordFacts *words = calloc(mask + 1, sizeof *words);
        if (!words)
            return -1;
        for (size_t i = 0; i <= indexer->word_mask; i++)
            if (indexer->words[i].used)
                *word_slot(words, mask, indexer->words[i].word) = indexer->words[i];
        free(indexer->words);
        indexer->words = words;
        indexer->word_mask = mask;
    }
    WordFacts *slot = word_slot(indexer->words, indexer->word_mask, facts.word);
    indexer->word_used += !slot->used;
    facts.used = 1;
    *slot = facts;
    return 0;
}

static int more_code(GroupIndexer *indexer)
{
    size_t mask = 2 * indexer->code_mask + 1;
    CodeSlot *code = calloc(mask + 1, sizeof *code);
    if (!code)
        return -1;
    for (size_t i = 0; i <= indexer->code_mask; i++)
        if (indexer->code[i].facts.used)
            *code_slot(code, mask, indexer->code[i].pc) = indexer->code[i];
    free(indexer->code);
    indexer->code = code;
    indexer->code_mask = mask;
    return 0;
}

/* Forget which instruction ran where. */
void indexer_forget(GroupIndexer *indexer)
{
    memset(indexer->code, 0, (indexer->code_mask + 1) * sizeof *indexer->code);
    indexer->code_used = 0;
}

static inline uint64_t number_in(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static inline uint64_t field(const uint8_t *bytes, unsigned count)
{
    switch (count) {
    case 8: return number_in(bytes, 8);
    case 4: return number_in(bytes, 4);
    case 2: return number_in(bytes, 2);
    default: return number_in(bytes, count);
    }
}

static inline int leads(const WordFacts *facts, uint64_t distance)
{
    if (facts->flags & ANYWHERE)
        return !(distance & 1);
    return (facts->count > 0 && facts->distances[0] == distance) ||
           (facts->count > 1 && facts->distances[1] == distance);
}

/* Whether the registers that a group writes allow it to be taken as it is; *kinds* of all of them. */
static inline int are_plain(const GroupIndexer *indexer, const GroupPlan *plan, const uint8_t *bytes, int mprv,
                            unsigned *kinds)
{
    uint64_t status = 0;
    for (unsigned i = 0; i < plan->register_count; i++) {
        const PlanRegister *at = &plan->registers[i];
        uint64_t regno = field(bytes + at->number_at, 2);
        if (regno >= REGISTERS)
            return 0;
        *kinds |= indexer->kinds[regno];
        if (indexer->kinds[regno] & STATUS_REGISTER)
            status |= field(bytes + at->value_at, at->value_bytes);
    }
    if (*kinds & SPECIAL_REGISTER)
        return 0;
    return !(*kinds & STATUS_REGISTER) || !(mprv || status & indexer->mprv);
}

static int add_registers(GroupIndexer *indexer, const GroupPlan *plan, const uint8_t *bytes, uint32_t group)
{
    for (unsigned i = 0; i < plan->register_count; i++) {
        const PlanRegister *at = &plan->registers[i];
        uint64_t regno = field(bytes + at->number_at, 2);
        WriteColumn *column = &indexer->columns[regno];
        if (!column->group_amount.count)
            indexer->touched[indexer->touched_count++] = (uint16_t)regno;
        if (ADD(column->groups, column->group_amount, group) ||
            ADD(column->values, column->value_amount, field(bytes + at->value_at, at->value_bytes)))
            return -1;
    }
    return 0;
}

static int add_store(StoreColumns *stores, const GroupPlan *plan, const uint8_t *bytes, uint32_t group)
{
    return ADD(stores->groups, stores->group_amount, group) ||
           ADD(stores->addresses, stores->address_amount, field(bytes + plan->address_at, plan->address_bytes)) ||
           ADD(stores->values, stores->value_amount, field(bytes + plan->data_at, plan->data_bytes)) ||
           ADD(stores->sizes, stores->size_amount, plan->data_bytes);
}

static int new_code(GroupIndexer *indexer, uint64_t pc, const WordFacts *facts)
{
    if (2 * indexer->code_used > indexer->code_mask && more_code(indexer))
        return -1;
    CodeSlot *slot = code_slot(indexer->code, indexer->code_mask, pc);
    indexer->code_used += !slot->facts.used;
    *slot = (CodeSlot){pc, *facts};
    return ADD(indexer->ran, indexer->ran_amount, ((RanCode){pc, facts->word}));
}

enum Indexing indexer_run(GroupIndexer *indexer, IndexPlace *place)
{
    uint64_t pc = place->pc;
    enum Indexing how = INDEXED;
    for (; place->group < place->stop; place->group++) {
        uint32_t group = place->group;
        uint16_t shape = place->shapes[group];
        const GroupPlan *plan = shape < indexer->plan_amount.count ? &indexer->plans[shape] : NULL;
        uint64_t offset = place->offsets[group];
        how = FOR_PYTHON;
        if (!plan || !plan->plain || pc == NOWHERE || pc < indexer->lowest || offset > place->length ||
            place->length - offset < plan->size)
            break;
        const uint8_t *bytes = place->data + offset;
        uint32_t word = (uint32_t)field(bytes + plan->word_at, plan->length);
        uint64_t next_pc =
            plan->full_pc ? field(bytes + plan->pc_at, plan->pc_bytes) : (pc + plan->length) & indexer->mask;
        const CodeSlot *ran = code_slot(indexer->code, indexer->code_mask, pc);
        const WordFacts *facts = &ran->facts;
        int is_new = !facts->used || facts->word != word;
        if (is_new)
            facts = word_slot(indexer->words, indexer->word_mask, word);
        if (!facts->used) {
            place->word = word;
            how = NEW_WORD;
            break;
        }
        unsigned kinds = 0;
        if ((plan->data_bytes ? plan->both && !place->in_physical : facts->stored) ||
            (plan->data_bytes && facts->flags & PYTHON_STORE) || !leads(facts, (next_pc - pc) & indexer->mask) ||
            !are_plain(indexer, plan, bytes, place->mprv, &kinds))
            break;
        how = INDEX_NO_MEMORY;
        if (kinds & FLOATING_REGISTER && !(kinds & STATUS_REGISTER) &&
            ADD(indexer->dirty, indexer->dirty_amount, group))
            break;
        StoreColumns *stores = &indexer->stores[plan->physical || place->in_physical];
        if (add_registers(indexer, plan, bytes, group) ||
            (plan->data_bytes && add_store(stores, plan, bytes, group)) ||
            (is_new && new_code(indexer, pc, facts)) || ADD(indexer->pcs, indexer->pc_amount, next_pc))
            break;
        how = INDEXED;
        pc = next_pc;
    }
    place->pc = pc;
    return how;
}

/* Paths */

int blocks_init(BlockTable *table)
{
    table->slots = calloc(FIRST_TANDEM_SLOTS, sizeof *table->slots);
    table->mask = FIRST_TANDEM_SLOTS - 1;
    return table->slots ? 0 : -1;
}

void blocks_free(BlockTable *table)
{
    free(table->slots);
    free(table->addresses);
    free(table->numbers);
    free(table->fresh);
}

static size_t block_hash(const uint64_t *pcs, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ hash >> 29 ^ pcs[i]) * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash ^ hash >> 32);
}

static BlockSlot *block_slot(const BlockTable *table, const uint64_t *pcs, size_t count)
{
    for (size_t i = block_hash(pcs, count);; i++) {
        BlockSlot *slot = &table->slots[i & table->mask];
        if (!slot->number ||
            (slot->count == count && !memcmp(table->addresses + slot->begin, pcs, count * sizeof *pcs)))
            return slot;
    }
}

static int more_blocks(BlockTable *table)
{
    BlockTable larger = {.mask = 2 * table->mask + 1, .addresses = table->addresses};
    larger.slots = calloc(larger.mask + 1, sizeof *larger.slots);
    if (!larger.slots)
        return -1;
    for (size_t i = 0; i <= table->mask; i++) {
        const BlockSlot *slot = &table->slots[i];
        if (slot->number)
            *block_slot(&larger, table->addresses + slot->begin, slot->count) = *slot;
    }
    free(table->slots);
    table->slots = larger.slots;
    table->mask = larger.mask;
    return 0;
}

static int add_block(BlockTable *table, const uint64_t *pcs, size_t first, size_t count)
{
    BlockSlot *slot = block_slot(table, pcs + first, count);
    if (!slot->number) {
        if (2 * (size_t)table->used > table->mask) {
            if (more_blocks(table))
                return -1;
            slot = block_slot(table, pcs + first, count);
        }
        if (array_reserve(&table->addresses, &table->address_amount, count, sizeof *table->addresses) ||
            ADD(table->fresh, table->fresh_amount, (uint32_t)first) ||
            ADD(table->fresh, table->fresh_amount, (uint32_t)(first + count)))
            return -1;
        memcpy(table->addresses + table->address_amount.count, pcs + first, count * sizeof *pcs);
        *slot = (BlockSlot){table->address_amount.count, (uint32_t)count, ++table->used};
        table->address_amount.count += count;
    }
    return ADD(table->numbers, table->number_amount, slot->number - 1);
}

/* Cut where an address is not one of the next four bytes, and after each `longest` instructions. */
int blocks_cut(BlockTable *table, const uint64_t *pcs, size_t count, size_t longest)
{
    table->number_amount.count = table->fresh_amount.count = 0;
    for (size_t first = 0, end = 1; first < count; end++) {
        if (end < count && end - first < longest && pcs[end] > pcs[end - 1] && pcs[end] - pcs[end - 1] <= 4)
            continue;
        if (add_block(table, pcs, first, end - first))
            return -1;
        first = end;
    }
    return 0;
}
