/* The code: QEMU's translation blocks, as they are written down and as they run.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

enum { BUCKETS = 1 << 16 };
struct qemu_plugin_scoreboard *scores;
struct qemu_plugin_register *program_counter, *hart_id, *address_space;
static struct qemu_plugin_register *privilege, *virtual;
static GByteArray *register_bytes; /* guarded by code_lock */
static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *buckets[BUCKETS];
static uint32_t blocks;
static int code_file = -1;
static bool incomplete; /* a line is missing in it, so those after it would have wrong numbers */

bool open_code(void) {
    char name[128];
    snprintf(name, sizeof name, "%s/code", dir);
    code_file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    return code_file >= 0;
}

void find_registers(void) {
    if (register_bytes) return;
    GArray *all = qemu_plugin_get_registers();
    const qemu_plugin_reg_descriptor *found = (const void *)all->data;
    for (unsigned i = 0; i < all->len; i++) {
        if (found[i].name && !strcmp(found[i].name, "priv")) privilege = found[i].handle;
        if (found[i].name && !strcmp(found[i].name, "virt")) virtual = found[i].handle;
        if (found[i].name && !strcmp(found[i].name, "pc")) program_counter = found[i].handle;
        if (found[i].name && !strcmp(found[i].name, "mhartid")) hart_id = found[i].handle;
        if (found[i].name && !strcmp(found[i].name, "satp")) address_space = found[i].handle;
    }
    register_bytes = g_byte_array_new();
}

static uint32_t hash_of(uint64_t pc, const uint8_t *code, size_t size) {
    uint64_t hash = pc * 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < size; i++) hash = (hash ^ code[i]) * 0x100000001b3ull;
    return (uint32_t)(hash ^ hash >> 29) % BUCKETS;
}

static unsigned size_at(const uint8_t *code) { return (*code & 3) == 3 ? 4 : 2; } /* as QEMU has it */

static void write_block(const struct block *block) {
    static char line[32 + 513 * 12];
    int at = snprintf(line, sizeof line, "%lx %x", (unsigned long)block->pc, block->mode);
    const uint8_t *code = block->code;
    for (size_t i = 0; i < block->n && at < (int)sizeof line - 24; i++) {
        size_t size = size_at(code);
        line[at++] = ' ';
        for (size_t byte = size; byte-- > 0;) at += sprintf(line + at, "%02x", code[byte]);
        code += size;
    }
    line[at++] = '\n';
    if (incomplete) return;
    errno = 0;
    if (write(code_file, line, at) == at) {
        atomic_fetch_add(&header->code_bytes, at);
    } else {
        incomplete = true;
        fail("the code", errno ? errno : ENOSPC);
    }
}

static int64_t bits(uint32_t word, int at, int count, int to) { return (int64_t)(word >> at & ((1u << count) - 1)) << to; }
static int64_t extended(int64_t value, int sign) { return value << (63 - sign) >> (63 - sign); }

/* Where the last instruction, `word` at `pc`, leads: see struct block. The offsets are those of the specification. */
static void find_leads(struct block *block, uint32_t word, uint64_t pc, unsigned size) {
    uint64_t next = pc + size;
    int64_t offset = 0;
    unsigned kind = word >> 13 & 7;
    block->says = true;
    block->leads[0] = block->leads[1] = next;
    if (size == 4 && (word & 0x7f) == 0x63) {
        offset = extended(bits(word, 31, 1, 12) | bits(word, 7, 1, 11) | bits(word, 25, 6, 5) | bits(word, 8, 4, 1), 12);
    } else if (size == 4 && (word & 0x7f) == 0x6f) {
        offset = extended(bits(word, 31, 1, 20) | bits(word, 12, 8, 12) | bits(word, 20, 1, 11) | bits(word, 21, 10, 1), 20);
        block->leads[0] = pc + offset;
    } else if (size == 2 && (word & 3) == 1 && (kind == 5 || (kind == 1 && xlen == 32))) {
        offset = extended(bits(word, 12, 1, 11) | bits(word, 11, 1, 4) | bits(word, 9, 2, 8) | bits(word, 8, 1, 10)
                          | bits(word, 7, 1, 6) | bits(word, 6, 1, 7) | bits(word, 3, 3, 1) | bits(word, 2, 1, 5), 11);
        block->leads[0] = pc + offset;
    } else if (size == 2 && (word & 3) == 1 && kind >= 6) {
        offset = extended(bits(word, 12, 1, 8) | bits(word, 10, 2, 3) | bits(word, 5, 2, 6) | bits(word, 3, 2, 1)
                          | bits(word, 2, 1, 5), 8);
    } else {
        unsigned opcode = word & 0x7f;
        block->says = size == 2 ? (word & 3) != 2 || kind != 4 : opcode != 0x67 && opcode != 0x73 && opcode != 0x0b
                                                                   && opcode != 0x2b && opcode != 0x5b && opcode != 0x7b;
        block->says = block->says && !(size == 2 && (word & 3) == 2 && kind == 5); /* Zcmp, Zcmt: cm.popret, cm.jt */
        return;
    }
    block->leads[1] = pc + offset;
    if (((block->leads[0] ^ block->leads[1]) & 4095) == 0 && block->leads[0] != block->leads[1]) block->says = false;
    if (xlen == 32) block->leads[0] &= 0xffffffff, block->leads[1] &= 0xffffffff;
}

/* A block of these instructions, new or as it was before; `code_lock` is held. */
static struct block *known(uint64_t pc, uint32_t mode, const uint8_t *code, size_t n, size_t size) {
    uint32_t hash = hash_of(pc, code, size);
    for (struct block *it = buckets[hash]; it; it = it->next)
        if (it->pc == pc && it->n == n && it->mode == mode && it->size == size && !memcmp(it->code, code, size))
            return it;
    struct block *block = malloc(sizeof *block + size);
    if (!block) { complain("a block"); exit(1); }
    *block = (struct block){.next = buckets[hash], .pc = pc, .id = blocks++, .n = n, .size = size, .mode = mode};
    memcpy(block->code, code, size);
    size_t last = 0;
    for (size_t i = 0, at = 0; i < n; i++, at += size_at(code + at)) last = at;
    uint32_t word = 0;
    memcpy(&word, code + last, size - last < 4 ? size - last : 4);
    find_leads(block, word, pc + last, size_at(code + last));
    buckets[hash] = block;
    write_block(block);
    return block;
}

struct block *alias_of(struct block *block, uint64_t moved) {
    uint64_t pc = block->pc + moved;
    if (xlen == 32) pc &= 0xffffffff;
    pthread_mutex_lock(&code_lock);
    struct block *it = block->aliases;
    while (it && it->pc != pc) it = it->aliases;
    if (!it) {
        it = known(pc, block->mode, block->code, block->n, block->size);
        it->all = block->all;
        if (!it->aliases && it != block) {
            it->aliases = block->aliases;
            block->aliases = it;
        }
    }
    pthread_mutex_unlock(&code_lock);
    return it;
}

static uint32_t read_small(struct qemu_plugin_register *which) {
    g_byte_array_set_size(register_bytes, 0);
    return which && qemu_plugin_read_register(which, register_bytes) > 0 ? register_bytes->data[0] : ~0u;
}

static uint32_t mode_now(void) {
    uint32_t mode = read_small(privilege), guest = read_small(virtual);
    return mode > 3 ? 0xf : mode | (guest == 1 ? 4 : 0);
}

static struct block *block_of(struct qemu_plugin_tb *tb) {
    static uint8_t code[512 * 8];
    size_t size = 0, n = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < n && size < sizeof code - 8; i++)
        size += qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, i), code + size, 8);
    return known(qemu_plugin_tb_vaddr(tb), mode_now(), code, n, size);
}

/* Whether an instruction that is not the last of its block can be the last one of it that begins. All but those that
 * only compute; what QEMU finds illegal is the last one anyway, and so are jumps. */
static bool may_leave(const uint8_t *code, size_t size) {
    unsigned low = code[0] | code[1] << 8, kind = low >> 13;
    if (size == 2) return (low & 3) == 0 ? kind != 0 : (low & 3) == 2 && kind != 0 && kind != 4;
    switch (low & 0x7f) {
    case 0x13: case 0x1b: case 0x33: case 0x3b: case 0x37: case 0x17: return size != 4; /* OP-IMM ... AUIPC */
    default: return true;
    }
}

/* Has the block say how far it came. What it says if it says nothing. */
static uint64_t watch(struct qemu_plugin_tb *tb, const struct block *block) {
    qemu_plugin_u64 began = {scores, offsetof(struct score, began)};
    const uint8_t *code = block->code;
    bool left = false; /* the one before may leave */
    uint64_t all = block->n;
    for (size_t i = 0; i < block->n; i++) {
        struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(tb, i);
        size_t size = qemu_plugin_insn_size(one);
        bool leaves = i + 1 < block->n && may_leave(code, size);
        uint64_t count = leaves ? i + 1 : block->n;
        if ((leaves || left) && in_turn)
            qemu_plugin_register_vcpu_insn_exec_cb(one, begun_in_turn, CB_NO_REGISTERS, (void *)(uintptr_t)count);
        else if (leaves || left)
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(one, INLINE_STORE_U64, began, count);
        all = leaves ? 0 : all;
        left = leaves;
        code += size;
    }
    return all;
}

void translated(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    pthread_mutex_lock(&code_lock);
    struct block *block = block_of(tb);
    pthread_mutex_unlock(&code_lock);
    block->all = watch(tb, block);
    if (in_turn) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, entered_in_turn, CB_READS_REGISTERS, block);
        return;
    }
    qemu_plugin_u64 recording = {scores, offsetof(struct score, recording)};
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, entered, CB_READS_REGISTERS, COND_NE, recording, 0, block);
}
