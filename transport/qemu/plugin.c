/* A QEMU plugin: what each RISC-V hart of qemu-system-riscv{32,64} ran, into a ring in shared memory.
 *
 *     gcc -O2 -shared -fPIC -pthread -o rvtrace.so plugin.c
 *     qemu-system-riscv64 -plugin rvtrace.so,dir=DIR,words=N -d int -D DIR/log ...
 *
 * Needs neither qemu-plugin.h nor the headers of GLib: the part of the plugin interface that is used is declared here
 * (docs.qemu.org, "QEMU TCG Plugins", interface versions 3 to 5: QEMU from 9.1 on).
 *
 * How it knows what ran. Before each instruction that can leave a translation block in its midst (one that may trap),
 * code that is part of the block stores the instruction's number, and behind the last of these the number of them all;
 * when a block is entered, the number left behind says how far the one before it came. Whether that last instruction
 * retired, the reader of the ring tells from where execution went on: see session/qemu/records.py. While nothing is
 * recorded, blocks call nobody.
 * Traps come from QEMU's log (-d int): a line is there before the handler's first block is entered. The log is a sparse
 * file, read here through a mapping, so looking for a line costs one load; what was read is given back to the system.
 * The privilege mode is a property of a translation block, so it is read when the block is translated. Its address is
 * not: QEMU executes the same block wherever the same memory is mapped. In machine mode nothing is mapped; otherwise pc is
 * read when a block is entered, unless the code of the one before leads there.
 *
 * What is written, in the order of little-endian words of 32 bits, by hart:
 *     00 id            a block was entered; what it is stands in line `id`, counted from 0, of the file DIR/code
 *     11 count         the block entered before was left when this many of its instructions had begun (if not all)
 *     10 flags         a trap, an interrupt if bit 0 is set; nine words `01` with 30 bits each follow, three for each
 *                      of epc, cause, tval, lowest bits first
 *     10 1<<29         recording began here
 * The top two bits tell words apart, so that a reader may begin anywhere in a ring that went round.
 *
 * DIR/ring:  a page for the header (struct header), a line of 64 bytes for each hart (struct place), the rings.
 * DIR/code:  "PC MODE WORD WORD ..." in hexadecimal; MODE: privilege mode, 4 added in a guest, f: not known.
 * DIR/control: a socket. "on" and "off" switch recording; "settle", to be said only while all harts are stopped, brings
 *              place.began up to date and writes down traps whose handler was not entered yet. Each answers "ok".
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (it is loaded into QEMU, which is under GPLv2)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The plugin interface. */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;
typedef struct {
    const char *target_name;
    struct { int min, cur; } version;
    bool system_emulation;
    union { struct { int smp_vcpus, max_vcpus; } system; };
} qemu_info_t;
typedef struct { struct qemu_plugin_scoreboard *score; size_t offset; } qemu_plugin_u64;
typedef struct { struct qemu_plugin_register *handle; const char *name, *feature; } qemu_plugin_reg_descriptor;
typedef struct { char *data; unsigned len; } GArray;
typedef struct { uint8_t *data; unsigned len; } GByteArray;
enum { CB_READS_REGISTERS = 1, INLINE_STORE_U64 = 1, COND_NE = 3 };

GByteArray *g_byte_array_new(void);
GByteArray *g_byte_array_set_size(GByteArray *, unsigned);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_init_cb(plugin_id, void (*)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_tb_exec_cond_cb(
    struct qemu_plugin_tb *, void (*)(unsigned, void *), int, int, qemu_plugin_u64, uint64_t, void *);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *, int, qemu_plugin_u64, uint64_t);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *, unsigned);
GArray *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *, GByteArray *);

__attribute__((visibility("default"))) int qemu_plugin_version = 3;

/* What the reader maps. */

enum { HEADER = 4096, STALLING = 1, MAGIC_BYTES = 8, MARGIN = 1024 };
struct header {
    char magic[MAGIC_BYTES];
    uint64_t words, harts, flags; /* of each ring; how many; STALLING: wait for the reader, do not overwrite */
    _Atomic uint64_t recording, ended, reader, code_bytes; /* reader: its process, which a stalled hart waits for */
    _Atomic uint64_t failed; /* errno: there was no room for what is to be written down */
};
struct place {
    _Atomic uint64_t written; /* words ever written to the ring of this hart */
    _Atomic uint64_t read;    /* words the reader is done with; only where STALLING */
    _Atomic uint64_t began;   /* instructions of the last block that had begun, as of the last "sync" */
    uint64_t unused[5];
};
enum { BLOCK = 0u, DATA = 1u << 30, TRAP = 2u << 30, PARTIAL = 3u << 30, BEGIN = 1u << 29, FIELD = (1u << 30) - 1 };

/* What is kept here. */

struct block {
    struct block *next;    /* of the same hash */
    struct block *aliases; /* the same code at another address; they are linked by this, too */
    uint64_t pc;
    uint64_t leads[2]; /* where its code leads, if its code says so */
    bool says;
    uint32_t id, n, size, mode;
    uint64_t all; /* what is in score.began if it came to its end without a word: n, or 0 if it always says */
    uint8_t code[];
};
struct trap { uint64_t epc, cause, tval; bool interrupt; };
enum { TRAPS = 32, BUCKETS = 1 << 16, MACHINE = 3 };
struct score { uint64_t began, recording, unused[6]; };
struct hart {
    struct score *score;
    struct place *place;
    uint32_t *ring;
    const struct block *last; /* entered last */
    uint64_t moved;           /* how far it is from where it was translated */
    GByteArray *pc;
    uint64_t limit;           /* no word of this number or a later one before the reader was looked at */
    _Atomic int waiting;      /* traps in `traps`; guarded by `lock` */
    _Atomic bool begins;      /* what is entered next is the first of a recording */
    bool ready, told;         /* told: how far the last block came is in the ring */
    struct trap traps[TRAPS];
};
static struct header *header;
static struct hart *harts;
static uint64_t mask;
static unsigned most;
static struct qemu_plugin_scoreboard *scores;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;       /* the log */
static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;  /* the blocks */
static struct block *buckets[BUCKETS];
static uint32_t blocks;
static _Atomic bool ending; /* QEMU ends, and some hart may not know yet */
static int code_file = -1, log_file = -1, listener = -1;
static char dir[80];
static struct qemu_plugin_register *privilege, *virtual, *program_counter;
static unsigned xlen;
static GByteArray *register_bytes;

static void complain(const char *what) { fprintf(stderr, "rvtrace plugin: %s: %s\n", what, strerror(errno)); }

/* The log: traps. */

enum { GIVEN_BACK = 1 << 20 };
static const uint64_t log_size = 1ull << 38;
static const char *log_lines;          /* the mapping */
static _Atomic uint64_t log_at;        /* up to here it was read */
static uint64_t log_given_back;

static void map_log(void) {
    char name[128];
    snprintf(name, sizeof name, "%s/log", dir);
    log_file = open(name, O_RDWR);
    if (log_file < 0 || ftruncate(log_file, log_size)) { complain(name); exit(1); }
    void *at = mmap(NULL, log_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, log_file, 0);
    if (at == MAP_FAILED) { complain("mapping the log"); exit(1); }
    log_lines = at;
}

static uint64_t number_after(const char *line, const char *key, int base) {
    const char *at = strstr(line, key);
    return at ? strtoull(at + strlen(key), NULL, base) : 0;
}

static void take_line(const char *text) {
    static const char begins[] = "riscv_cpu_do_interrupt: ";
    if (strncmp(text, begins, sizeof begins - 1)) return;
    uint64_t hart = number_after(text, "hart:", 10);
    if (hart >= most) return;
    struct hart *h = &harts[hart];
    int waiting = atomic_load(&h->waiting);
    if (waiting == TRAPS) waiting--; /* a handler that itself traps, for ever: the first ones and the newest are kept */
    h->traps[waiting] = (struct trap){
        number_after(text, "epc:0x", 16), number_after(text, "cause:", 16), number_after(text, "tval:0x", 16),
        number_after(text, "async:", 10) != 0,
    };
    atomic_store(&h->waiting, waiting + 1);
}

static bool log_waits(void) { return log_lines[atomic_load_explicit(&log_at, memory_order_relaxed)] != 0; }

static void read_log(void) {
    char line[256];
    pthread_mutex_lock(&lock);
    uint64_t at = atomic_load(&log_at);
    while (at < log_size - sizeof line) {
        const char *end = memchr(log_lines + at, '\n', sizeof line - 1);
        const char *stop = memchr(log_lines + at, 0, sizeof line - 1);
        if (stop && (!end || stop < end)) break; /* not complete yet */
        size_t size = end ? (size_t)(end - (log_lines + at)) : sizeof line - 1;
        memcpy(line, log_lines + at, size);
        line[size] = 0;
        take_line(line);
        at += size + (end != NULL);
    }
    if (at - log_given_back >= GIVEN_BACK) {
        uint64_t whole = (at - 4096) & ~4095ull;
        fallocate(log_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, log_given_back, whole - log_given_back);
        log_given_back = whole;
    }
    atomic_store(&log_at, at);
    pthread_mutex_unlock(&lock);
}

/* The ring. */

/* The word numbered `at` can be written when this has returned, and all before h->limit. */
static void wait_for_reader(struct hart *h, uint64_t at) {
    int64_t room = mask + 1 - MARGIN;
    if (header->flags & STALLING)
        while ((int64_t)(at - atomic_load_explicit(&h->place->read, memory_order_acquire)) >= room) {
            if ((uint64_t)getppid() != atomic_load(&header->reader)) break; /* nobody reads any more */
            usleep(200);
        }
    h->limit = (header->flags & STALLING ? atomic_load(&h->place->read) : at) + room;
    if (h->limit <= at) h->limit = at + room;
}

static uint64_t put_trap(const struct hart *h, uint64_t at, const struct trap *trap) {
    const uint64_t values[] = {trap->epc, trap->cause, trap->tval};
    h->ring[at++ & mask] = TRAP | trap->interrupt;
    for (int value = 0; value < 3; value++)
        for (int shift = 0; shift < 90; shift += 30)
            h->ring[at++ & mask] = DATA | (values[value] >> shift & FIELD);
    return at;
}

static uint64_t put_traps(struct hart *h, uint64_t at) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < atomic_load(&h->waiting); i++) at = put_trap(h, at, &h->traps[i]);
    atomic_store(&h->waiting, 0);
    pthread_mutex_unlock(&lock);
    return at;
}

/* How the last block ended, and the traps since; twice says it once. */
static uint64_t settle(struct hart *h, uint64_t at) {
    if (h->score->began != h->last->n && !h->told) h->ring[at++ & mask] = PARTIAL | (uint32_t)h->score->began;
    h->told = true;
    if (atomic_load_explicit(&h->waiting, memory_order_acquire)) at = put_traps(h, at);
    return at;
}

static struct block *alias_of(struct block *block, uint64_t moved);

/* Whether the code of the block before says that the hart is now at `block`, as far from where it was translated. */
static bool is_led_to(const struct hart *h, const struct block *block) {
    const struct block *last = h->last;
    if (!last || !last->says || h->score->began != last->n || atomic_load(&h->begins) || atomic_load(&h->waiting)) return false;
    uint64_t pc = block->pc + h->moved;
    return pc == last->leads[0] || pc == last->leads[1];
}

static uint64_t pc_now(struct hart *h, uint64_t otherwise) {
    uint64_t pc = 0;
    g_byte_array_set_size(h->pc, 0);
    int size = program_counter ? qemu_plugin_read_register(program_counter, h->pc) : 0;
    if (size <= 0 || size > 8) return otherwise;
    memcpy(&pc, h->pc->data, size);
    return pc;
}

/* The first block of a recording. */
static uint64_t begin(struct hart *h, uint64_t at) {
    atomic_store(&h->begins, false);
    atomic_store(&h->waiting, 0);
    h->ring[at++ & mask] = TRAP | BEGIN;
    return at;
}

static void entered(unsigned cpu, void *data) {
    struct hart *h = &harts[cpu];
    struct block *block = data;
    if (__builtin_expect(log_waits(), 0)) read_log();
    if (__builtin_expect(ending, 0)) {
        usleep(1000000); /* what is looked at now is to stay as it is */
        return;
    }
    if (block->mode != MACHINE && !is_led_to(h, block)) h->moved = pc_now(h, block->pc) - block->pc;
    if (block->mode == MACHINE) h->moved = 0;
    if (__builtin_expect(h->moved, 0)) block = alias_of(block, h->moved);
    uint64_t at = atomic_load_explicit(&h->place->written, memory_order_relaxed);
    if (__builtin_expect(at >= h->limit, 0)) wait_for_reader(h, at);
    if (__builtin_expect(atomic_load_explicit(&h->begins, memory_order_acquire), 0)) {
        at = begin(h, at);
    } else if (h->score->began != h->last->n || atomic_load_explicit(&h->waiting, memory_order_relaxed)) {
        at = settle(h, at);
    }
    h->ring[at++ & mask] = BLOCK | block->id;
    h->last = block;
    h->told = false;
    h->score->began = block->all;
    atomic_store_explicit(&h->place->written, at, memory_order_release);
}

/* The blocks. */

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
    if (header->failed) return;
    if (write(code_file, line, at) == at) {
        atomic_fetch_add(&header->code_bytes, at);
    } else {
        atomic_store(&header->failed, errno ? errno : ENOSPC);
        complain("writing down the code");
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

static struct block *alias_of(struct block *block, uint64_t moved) {
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
        if (leaves || left)
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
                one, INLINE_STORE_U64, began, leaves ? i + 1 : block->n);
        all = leaves ? 0 : all;
        left = leaves;
        code += size;
    }
    return all;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    pthread_mutex_lock(&code_lock);
    struct block *block = block_of(tb);
    pthread_mutex_unlock(&code_lock);
    block->all = watch(tb, block);
    qemu_plugin_u64 recording = {scores, offsetof(struct score, recording)};
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, entered, CB_READS_REGISTERS, COND_NE, recording, 0, block);
}

/* The harts. */

static void find_registers(void) {
    GArray *all = qemu_plugin_get_registers();
    const qemu_plugin_reg_descriptor *found = (const void *)all->data;
    for (unsigned i = 0; i < all->len; i++) {
        if (found[i].name && !strcmp(found[i].name, "priv")) privilege = found[i].handle;
        if (found[i].name && !strcmp(found[i].name, "virt")) virtual = found[i].handle;
        if (found[i].name && !strcmp(found[i].name, "pc")) program_counter = found[i].handle;
    }
    register_bytes = g_byte_array_new();
}

static void hart_begins(plugin_id id, unsigned cpu) {
    (void)id;
    pthread_mutex_lock(&lock);
    if (cpu < most) {
        harts[cpu].ready = true;
        harts[cpu].pc = g_byte_array_new();
    }
    if (!log_lines) map_log();
    if (!register_bytes) find_registers();
    for (unsigned i = 0; i < most; i++) /* they move when there is one more */
        if (harts[i].ready) harts[i].score = qemu_plugin_scoreboard_find(scores, i);
    if (cpu < most) harts[cpu].score->recording = header->recording;
    pthread_mutex_unlock(&lock);
}

/* The control socket. */

static void settle_all(void) {
    if (log_lines) read_log();
    for (unsigned i = 0; i < most; i++) {
        struct hart *h = &harts[i];
        bool open = h->ready && h->last && !atomic_load(&h->begins) && header->recording;
        atomic_store(&h->place->began, open ? h->score->began : 0);
        if (open && atomic_load(&h->waiting)) atomic_store(&h->place->written, settle(h, h->place->written));
    }
}

/* Blocks call `entered` while this is on; what a hart ran before is no part of what it runs after it was off. */
static void record(bool on) {
    pthread_mutex_lock(&lock);
    bool before = atomic_exchange(&header->recording, on);
    for (unsigned i = 0; i < most; i++) {
        if (on && !before) atomic_store(&harts[i].begins, true);
        if (harts[i].ready) harts[i].score->recording = on;
    }
    pthread_mutex_unlock(&lock);
}

static void obey(const char *command) {
    if (!strncmp(command, "on", 2)) record(true);
    if (!strncmp(command, "off", 3)) record(false);
    if (!strncmp(command, "settle", 6)) settle_all();
}

/* Harts that trap without ever running a block fill the log: it is read here, too. */
static void *serve(void *unused) {
    struct pollfd calls = {listener, POLLIN, 0};
    char command[64];
    for (;;) {
        if (poll(&calls, 1, 100) > 0) {
            int caller = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            ssize_t got = caller < 0 ? -1 : read(caller, command, sizeof command - 1);
            if (got > 0) {
                command[got] = 0;
                obey(command);
                if (write(caller, "ok\n", 3) != 3) complain("answering");
            }
            if (caller >= 0) close(caller);
        }
        if (log_lines && log_waits()) read_log();
    }
    return unused;
}

/* A hart may end QEMU (HTIF, semihosting) while the others run: they are held up, so that the end is one. */
static void ends(plugin_id id, void *unused) {
    (void)id, (void)unused;
    ending = true;
    usleep(2000);
    settle_all();
    atomic_store(&header->ended, 1);
}

/* The beginning. */

static bool make_ring(uint64_t words, bool stalling, bool recording) {
    char name[128];
    size_t first = HEADER + ((most * sizeof(struct place) + 4095) & ~4095ul), size = first + most * words * 4;
    snprintf(name, sizeof name, "%s/ring", dir);
    int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || (errno = posix_fallocate(file, 0, size))) return false;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return false;
    header = (struct header *)at;
    for (unsigned i = 0; i < most; i++) {
        harts[i].place = (struct place *)(at + HEADER) + i;
        harts[i].ring = (uint32_t *)(at + first + i * words * 4);
        harts[i].begins = recording;
    }
    mask = words - 1;
    header->words = words;
    header->harts = most;
    header->flags = stalling ? STALLING : 0;
    header->recording = recording;
    header->reader = getppid();
    memcpy(header->magic, "RVTRACE1", MAGIC_BYTES);
    snprintf(name, sizeof name, "%s/code", dir);
    code_file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    return code_file >= 0;
}

static bool make_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/control", dir);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8)) return false;
    return !pthread_create(&thread, NULL, serve, NULL);
}

__attribute__((visibility("default")))
int qemu_plugin_install(plugin_id id, const qemu_info_t *info, int argc, char **argv) {
    uint64_t words = 1 << 20;
    bool stalling = false, recording = false;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "dir=", 4)) snprintf(dir, sizeof dir, "%s", argv[i] + 4);
        if (!strncmp(argv[i], "words=", 6)) words = strtoull(argv[i] + 6, NULL, 0);
        if (!strcmp(argv[i], "stall=on")) stalling = true;
        if (!strcmp(argv[i], "record=on")) recording = true;
    }
    if (!info->system_emulation || strncmp(info->target_name, "riscv", 5)) {
        fprintf(stderr, "rvtrace plugin: this is no qemu-system-riscv32 or -riscv64\n");
        return -1;
    }
    most = info->system.smp_vcpus;
    xlen = strstr(info->target_name, "32") ? 32 : 64;
    harts = calloc(most, sizeof *harts);
    if (!harts || words < 4 * MARGIN || words & (words - 1) || !make_ring(words, stalling, recording) || !make_socket()) {
        complain(dir);
        return -1;
    }
    scores = qemu_plugin_scoreboard_new(sizeof(struct score));
    qemu_plugin_register_vcpu_init_cb(id, hart_begins);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return 0;
}
