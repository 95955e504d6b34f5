/* What the files of the plugin share. See plugin.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RVTRACE_PLUGIN_H
#define RVTRACE_PLUGIN_H
#include <pthread.h>
#include <stdatomic.h>

#include "qemu.h"

#pragma GCC visibility push(hidden) /* QEMU has names of its own */

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
enum { BLOCK = 0u, DATA = 1u << 30, TRAP = 2u << 30, PARTIAL = 3u << 30, BEGIN = 1u << 29, SPACE = 1u << 28, FIELD = (1u << 30) - 1 };

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
enum { TRAPS = 32, USER = 0, MACHINE = 3, SPACE_AGAIN = 1 << 14 };
struct score { uint64_t began, recording, unused[6]; };
struct hart {
    struct score *score, own; /* own: where QEMU's cannot be used, that is in_turn */
    struct place *place;
    uint32_t *ring;
    const struct block *last; /* entered last */
    uint64_t moved;           /* how far it is from where it was translated */
    GByteArray *bytes;        /* of a register that is read */
    uint64_t space, space_told; /* satp as it was written down last, and at which word */
    uint64_t limit;           /* no word of this number or a later one before the reader was looked at */
    _Atomic int waiting;      /* traps in `traps`; guarded by `lock` */
    _Atomic bool begins;      /* what is entered next is the first of a recording */
    bool ready, reported;     /* reported: how far the last block came is in the ring */
    struct trap traps[TRAPS];
};
extern struct header *header;
extern struct hart *harts;
extern unsigned most, xlen; /* harts; bits */
extern char dir[80];
extern pthread_mutex_t lock; /* the log, and what is done to the harts */
extern bool in_turn;         /* the harts run on one thread */

void complain(const char *what);
void fail(const char *what, int problem); /* the reader tells that something is missing */

/* plugin.c */
void entered(unsigned cpu, void *block);
void entered_in_turn(unsigned cpu, void *block);
void begun_in_turn(unsigned cpu, void *count);
void settle_all(void);
void record(bool on);

/* code.c */
extern struct qemu_plugin_scoreboard *scores;
extern struct qemu_plugin_register *program_counter, *hart_id, *address_space;
bool open_code(void);
void find_registers(void);
struct block *alias_of(struct block *block, uint64_t moved);
void translated(plugin_id id, struct qemu_plugin_tb *tb);

/* log.c */
extern const char *log_lines;   /* the mapping */
extern _Atomic uint64_t log_at; /* up to here it was read */
void map_log(void);
void read_log(void);
static inline bool log_waits(void) { return log_lines[atomic_load_explicit(&log_at, memory_order_relaxed)] != 0; }

/* control.c */
bool make_socket(void);

#pragma GCC visibility pop
#endif
