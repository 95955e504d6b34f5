/* The first process of the Linux that a test boots: what is traced runs between `traced_begins` and `traced_ends`. What
 * the kernel knows of itself is then written to the disk: /proc/kallsyms, /proc/modules, and of /proc/kcore the text
 * of the kernel and 64 KiB of each module, and, of the events that it traced meanwhile, sched_switch: which task it
 * switched to, with its name and number, in the order of time.
 */
#include "system.h"

enum { WRITE_ONLY = 1, READ_WRITE = 2, CHILD_SIGNAL = 17, MODULES_AT = 24 << 20, SWITCHES_AT = 28 << 20, TEXT_AT = 32 << 20, TEXT = 16 << 20, MODULE = 64 << 10 };
static char page[1 << 16];

__attribute__((noinline)) void traced_begins(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void traced_ends(void) { __asm__ volatile("" ::: "memory"); }

__attribute__((noinline)) void all_written(void) { __asm__ volatile("" ::: "memory"); }

static void say(const char *text) {
    long size = 0;
    while (text[size]) size++;
    call(WRITE, 1, (long)text, size, 0, 0);
}

static void check(long result, const char *what) {
    if (result < 0) say("failed: "), say(what), say("\n");
}

static void set(const char *path, const char *text, long size) {
    long file = open_file(path, WRITE_ONLY);
    check(file, path);
    check(call(WRITE, file, (long)text, size, 0, 0), path);
    call(CLOSE, file, 0, 0, 0, 0);
}

static void load(const char *path) {
    long file = open_file(path, 0);
    check(call(FINIT_MODULE, file, (long)"", 0, 0, 0), path);
    call(CLOSE, file, 0, 0, 0, 0);
}

static void begin(const char *path) {
    const char *arguments[] = {path, 0};
    if (call(CLONE, CHILD_SIGNAL, 0, 0, 0, 0) == 0) {
        call(EXECVE, (long)path, (long)arguments, (long)(arguments + 1), 0, 0);
        call(EXIT, 1, 0, 0, 0, 0);
    }
}

static void copy(long from, long to, long size) {
    while (size > 0) {
        long got = call(READ, from, (long)page, size < (long)sizeof page ? size : (long)sizeof page, 0, 0);
        if (got <= 0) return;
        call(WRITE, to, (long)page, got, 0, 0);
        size -= got;
    }
}

/* Have the next bytes of /proc/kcore be those at an address: all its segments are as far from their addresses. */
static void seek(long memory, unsigned long address) {
    static unsigned long header[512];
    call(LSEEK, memory, 0, 0, 0, 0);
    call(READ, memory, (long)header, sizeof header, 0, 0);
    unsigned long *segment = header + header[4] / 8 + 7; /* the second: the first has notes; 56 bytes each */
    call(LSEEK, memory, (long)(segment[1] + (address - segment[2])), 0, 0, 0);
}

static void copy_kernel(long disk) {
    long names = open_file("/proc/kallsyms", 0), memory = open_file("/proc/kcore", 0);
    static char modules[4096];
    copy(names, disk, MODULES_AT);
    long size = call(READ, open_file("/proc/modules", 0), (long)modules, sizeof modules - 1, 0, 0);
    call(LSEEK, disk, MODULES_AT, 0, 0, 0);
    call(WRITE, disk, (long)modules, size, 0, 0);
    call(LSEEK, disk, SWITCHES_AT, 0, 0, 0);
    copy(open_file("/t/trace", 0), disk, TEXT_AT - SWITCHES_AT);
    call(LSEEK, disk, TEXT_AT, 0, 0, 0);
    seek(memory, 0xffffffff80002000);
    copy(memory, disk, TEXT);
    for (long at = 0; at < size - 1; at++) {
        unsigned long address = 0;
        if (modules[at] != '0' || modules[at + 1] != 'x') continue;
        for (at += 2; modules[at] > ' '; at++) address = address << 4 | (modules[at] & 15) + (modules[at] > '9' ? 9 : 0);
        seek(memory, address);
        copy(memory, disk, MODULE);
    }
}

void begin_here(void) {
    check(call(MOUNT, (long)"d", (long)"/dev", (long)"devtmpfs", 0, 0), "devtmpfs");
    check(call(MOUNT, (long)"p", (long)"/proc", (long)"proc", 0, 0), "proc");
    load("/virtio_blk.ko");
    check(call(MOUNT, (long)"t", (long)"/t", (long)"tracefs", 0, 0), "tracefs");
    long disk = open_file("/dev/vda", READ_WRITE);
    check(disk, "/dev/vda");
    load("/virtio_mmio.ko");
    set("/t/events/sched/sched_switch/enable", "1", 1);
    traced_begins();
    set("/t/trace_marker", "begins", 6);
    begin("/one");
    begin("/two");
    while (call(WAIT4, -1, 0, 0, 0, 0) > 0) {}
    check(call(READ, disk, (long)page, sizeof page, 0, 0), "reading the disk");
    traced_ends();
    set("/t/tracing_on", "0", 1);
    call(LSEEK, disk, 0, 0, 0, 0);
    copy_kernel(disk);
    call(CLOSE, disk, 0, 0, 0, 0);
    say("done\n");
    all_written();
    call(REBOOT, 0xfee1dead, 672274793, 0x4321fedc, 0, 0);
    for (;;) {}
}

__asm__(".globl _start\n_start: call begin_here\n");
