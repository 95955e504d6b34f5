/* Traps, from QEMU's log.
 *
 * SPDX-License-Identifier: MIT
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

enum { GIVEN_BACK = 1 << 20, AHEAD = 1 << 20 };
static const uint64_t log_size = 1ull << 38;
const char *log_lines;
_Atomic uint64_t log_at;
static uint64_t log_given_back, log_reserved; /* reserved: up to here there is room for it */
static int log_file = -1;

/* So that QEMU, which does not look, loses no line, and reading ahead of it finds memory. Where there is no room any more,
 * nothing is read. `lock` is held.
 */
static void reserve(uint64_t at) {
    while (!header->failed && log_reserved < at + AHEAD) {
        int problem = fallocate(log_file, 0, log_reserved, AHEAD) ? errno : 0;
        if (problem == EINTR) continue;
        if (problem == ENOSPC) {
            int more = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
            mmap((char *)log_lines + log_reserved, log_size - log_reserved, PROT_READ, more, -1, 0);
            fail("the log of traps", problem);
        }
        log_reserved += AHEAD;
    }
}

void map_log(void) {
    char name[128];
    snprintf(name, sizeof name, "%s/log", dir);
    log_file = open(name, O_RDWR);
    if (log_file < 0 || ftruncate(log_file, log_size)) { complain(name); exit(1); }
    void *at = mmap(NULL, log_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, log_file, 0);
    if (at == MAP_FAILED) { complain("mapping the log"); exit(1); }
    log_lines = at;
    reserve(0);
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

void read_log(void) {
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
    reserve(at);
    atomic_store(&log_at, at);
    pthread_mutex_unlock(&lock);
}
