/* A QEMU plugin: what each RISC-V hart of qemu-system-riscv{32,64} ran, into a ring in shared memory.
 *
 *     gcc -O2 -shared -fPIC -pthread -o rvtrace.so *.c
 *     qemu-system-riscv64 -plugin rvtrace.so,dir=DIR,words=N -d int -D DIR/log ...
 *
 * Needs neither qemu-plugin.h nor the headers of GLib: see qemu.h. This file has the hot path, the harts and the
 * beginning; code.c the translation blocks, log.c the traps, control.c the socket.
 *
 * How it knows what ran. Before each instruction that can leave a translation block in its midst (one that may trap),
 * code that is part of the block stores the instruction's number, and after the last of these the number of them all;
 * when a block is entered, the number left in memory shows how far the one before it came. Whether that last instruction
 * retired, the reader of the ring tells from where execution went on: see session/sources/qemu/records.py. While nothing is
 * recorded, blocks call nobody.
 * Traps come from QEMU's log (-d int): a line is there before the handler's first block is entered. The log is a sparse
 * file, read here through a mapping, so looking for a line costs one load; what was read is given back to the system.
 * The privilege mode is a property of a translation block, so it is read when the block is translated. Its address is
 * not: QEMU executes the same block wherever the same memory is mapped. In machine mode nothing is mapped; otherwise pc is
 * read when a block is entered, unless the code of the one before leads there.
 *
 * Where the harts take turns on one thread (-icount, thread=single), QEMU 10 translates a block for the index of the hart
 * that comes first, and runs it for all (accel/tcg/plugin-gen.c, gen_cpu_index), so neither the index that a callback
 * is given nor what is stored inline by hart can be used: the hart is read (mhartid) when a block is entered, and
 * instructions call.
 *
 * What is written, in the order of little-endian words of 32 bits, by hart:
 *     00 id            a block was entered; what it is stands in line `id`, counted from 0, of the file DIR/code
 *     11 count         the block entered before was left when this many of its instructions had begun (if not all)
 *     10 flags         a trap, an interrupt if bit 0 is set; nine words `01` with 30 bits each follow, three for each
 *                      of epc, cause, tval, lowest bits first
 *     10 1<<29         recording began here
 *     10 1<<28         the address space of what follows in user mode; three words `01` with satp follow, lowest bits first
 * The top two bits are the kind of a word, so that a reader may begin anywhere in a ring that went round.
 *
 * DIR/ring:  a page for the header (struct header), a line of 64 bytes for each hart (struct place), the rings.
 * DIR/code:  "PC MODE WORD WORD ..." in hexadecimal; MODE: privilege mode, 4 added in a guest, f: not known.
 * DIR/control: a socket. "on" and "off" switch recording; "settle", to be said only while all harts are stopped, brings
 *              place.began up to date and writes down traps whose handler was not entered yet. Each answers "ok".
 *
 * SPDX-License-Identifier: MIT (which may be loaded into QEMU: it is compatible with QEMU's GPL)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin.h"

__attribute__((visibility("default"))) int qemu_plugin_version = 3;

struct header *header;
struct hart *harts;
unsigned most, xlen;
char dir[80];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool in_turn;
static uint64_t mask;
static _Atomic bool ending; /* QEMU ends, and some hart may not know yet */
static struct hart *now;    /* whose turn it is; only where in_turn */
static pthread_t thread;    /* of the hart that began last */
static bool begun;

void complain(const char *what) { fprintf(stderr, "rvtrace plugin: %s: %s\n", what, strerror(errno)); }

void fail(const char *what, int problem) {
    errno = problem;
    complain(what);
    atomic_store(&header->failed, problem);
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

static uint64_t register_now(struct hart *h, struct qemu_plugin_register *which, uint64_t otherwise);

/* The address space, where user mode begins: others than the one before, and all now and then, as a ring goes round. */
static uint64_t put_space(struct hart *h, uint64_t at) {
    uint64_t now = register_now(h, address_space, 0);
    if (now == h->space && at - h->space_told < SPACE_AGAIN) return at;
    h->space = now;
    h->space_told = at;
    h->ring[at++ & mask] = TRAP | SPACE;
    for (int shift = 0; shift < 90; shift += 30) h->ring[at++ & mask] = DATA | (shift < 64 ? now >> shift & FIELD : 0);
    return at;
}

/* How the last block ended, and the traps since; twice says it once. */
static uint64_t settle(struct hart *h, uint64_t at) {
    if (h->score->began != h->last->n && !h->reported) h->ring[at++ & mask] = PARTIAL | (uint32_t)h->score->began;
    h->reported = true;
    if (atomic_load_explicit(&h->waiting, memory_order_acquire)) at = put_traps(h, at);
    return at;
}

/* Whether the code of the block before says that the hart is now at `block`, as far from where it was translated. */
static bool is_led_to(const struct hart *h, const struct block *block) {
    const struct block *last = h->last;
    if (!last || !last->says || h->score->began != last->n || atomic_load(&h->begins) || atomic_load(&h->waiting)) return false;
    uint64_t pc = block->pc + h->moved;
    return pc == last->leads[0] || pc == last->leads[1];
}

static uint64_t register_now(struct hart *h, struct qemu_plugin_register *which, uint64_t otherwise) {
    uint64_t value = 0;
    g_byte_array_set_size(h->bytes, 0);
    int size = which ? qemu_plugin_read_register(which, h->bytes) : 0;
    if (size <= 0 || size > 8) return otherwise;
    memcpy(&value, h->bytes->data, size);
    return value;
}

/* The first block of a recording. */
static uint64_t begin(struct hart *h, uint64_t at) {
    atomic_store(&h->begins, false);
    atomic_store(&h->waiting, 0);
    h->space_told = at - SPACE_AGAIN;
    h->ring[at++ & mask] = TRAP | BEGIN;
    return at;
}

static void enter(struct hart *h, struct block *block) {
    if (__builtin_expect(log_waits(), 0)) read_log();
    if (__builtin_expect(ending, 0)) {
        usleep(1000000); /* what is looked at now is to stay as it is */
        return;
    }
    if (block->mode != MACHINE && !is_led_to(h, block)) h->moved = register_now(h, program_counter, block->pc) - block->pc;
    if (block->mode == MACHINE) h->moved = 0;
    if (__builtin_expect(h->moved, 0)) block = alias_of(block, h->moved);
    uint64_t at = atomic_load_explicit(&h->place->written, memory_order_relaxed);
    if (__builtin_expect(at >= h->limit, 0)) wait_for_reader(h, at);
    if (__builtin_expect(atomic_load_explicit(&h->begins, memory_order_acquire), 0)) {
        at = begin(h, at);
    } else if (h->score->began != h->last->n || atomic_load_explicit(&h->waiting, memory_order_relaxed)) {
        at = settle(h, at);
    }
    if (block->mode == USER && (!h->last || h->last->mode != USER)) at = put_space(h, at);
    h->ring[at++ & mask] = BLOCK | block->id;
    h->last = block;
    h->reported = false;
    h->score->began = block->all;
    atomic_store_explicit(&h->place->written, at, memory_order_release);
}

/* Where each hart has a thread. */
void entered(unsigned cpu, void *block) { enter(&harts[cpu], block); }

/* Where they take turns: `cpu` is any. */
void entered_in_turn(unsigned cpu, void *block) {
    (void)cpu;
    if (!header->recording) return;
    uint64_t hart = register_now(&harts[0], hart_id, most);
    if (hart >= most) return;
    now = &harts[hart];
    enter(now, block);
}

void begun_in_turn(unsigned cpu, void *count) {
    (void)cpu;
    if (now) now->score->began = (uintptr_t)count;
}

/* The harts. */

/* On the hart's thread, before anything is translated. */
static void hart_begins(plugin_id id, unsigned cpu) {
    (void)id;
    pthread_mutex_lock(&lock);
    if (cpu < most) {
        in_turn = in_turn || (begun && pthread_equal(thread, pthread_self()));
        thread = pthread_self();
        begun = true;
        harts[cpu].ready = true;
        harts[cpu].bytes = g_byte_array_new();
    }
    if (!log_lines) map_log();
    find_registers();
    for (unsigned i = 0; i < most; i++) /* those of QEMU move when there is one more */
        if (harts[i].ready) harts[i].score = in_turn ? &harts[i].own : qemu_plugin_scoreboard_find(scores, i);
    if (cpu < most) harts[cpu].score->recording = header->recording;
    pthread_mutex_unlock(&lock);
}

void settle_all(void) {
    if (log_lines) read_log();
    for (unsigned i = 0; i < most; i++) {
        struct hart *h = &harts[i];
        bool open = h->ready && h->last && !atomic_load(&h->begins) && header->recording;
        atomic_store(&h->place->began, open ? h->score->began : 0);
        if (open && atomic_load(&h->waiting)) atomic_store(&h->place->written, settle(h, h->place->written));
    }
}

/* Blocks call `entered` while this is on; what a hart ran before is no part of what it runs after it was off. */
void record(bool on) {
    pthread_mutex_lock(&lock);
    bool before = atomic_exchange(&header->recording, on);
    for (unsigned i = 0; i < most; i++) {
        if (on && !before) atomic_store(&harts[i].begins, true);
        if (harts[i].ready) harts[i].score->recording = on;
    }
    pthread_mutex_unlock(&lock);
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
    return open_code();
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
        fprintf(stderr, "rvtrace plugin: this is not a qemu-system-riscv32 or -riscv64\n");
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

