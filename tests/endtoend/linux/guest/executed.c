/* A QEMU plugin that writes down each instruction that begins, from one address to where the kernel is entered for the
 * first time after another one, and a little more: what a test compares a decoded trace with. It knows nothing of the
 * recorder of rvtrace, which works by translation blocks.
 *
 *     -plugin executed.so,out=FILE,from=ADDRESS,to=ADDRESS
 *
 * FILE.0, FILE.1: what each hart began, words of 64 bits: an address; or, where the handler of S-mode or the firmware's
 * begins, 1 and the address at which an exception was raised. Of an interrupt there is no word: what began before it has
 * retired.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../transport/qemu/plugin/qemu.h"

__attribute__((visibility("default"))) int qemu_plugin_version = 3;

enum { MODES = 2, VECTOR, EPC, CAUSE, KINDS };
static const char *names[MODES][KINDS + 1] = {
    {[VECTOR] = "stvec", [EPC] = "sepc", [CAUSE] = "scause"}, {[VECTOR] = "mtvec", [EPC] = "mepc", [CAUSE] = "mcause"}
};
static _Thread_local struct qemu_plugin_register *registers[MODES][KINDS + 1]; /* QEMU has a thread for each hart */
static _Thread_local GByteArray *bytes;
static _Thread_local FILE *out;
static uint64_t from, to;
static char path[4096];
static volatile int on;
static _Thread_local int ending, left;

enum { MORE = 1000 };

static void put(uint64_t word) { fwrite(&word, sizeof word, 1, out); }

static uint64_t value_of(struct qemu_plugin_register *which) {
    uint64_t value = 0;
    g_byte_array_set_size(bytes, 0);
    if (qemu_plugin_read_register(which, bytes) == sizeof value) memcpy(&value, bytes->data, sizeof value);
    return value;
}

static void begins(unsigned cpu, void *pc) {
    (void)cpu;
    if ((uintptr_t)pc == from) on = 1;
    if (on) put((uintptr_t)pc);
    if (on && (uintptr_t)pc == to) ending = 1;
    if (left && !--left) on = 0, fflush(NULL);
}

static uint64_t vector_of(int mode) { return value_of(registers[mode][VECTOR]) & ~3ul; }
static bool is_exception(int mode) { return (int64_t)value_of(registers[mode][CAUSE]) >= 0; }

/* The firmware may be interrupted in before the handler of an exception of S-mode has begun. */
static void block_begins(unsigned cpu, void *pc) {
    (void)cpu;
    for (int mode = 0; on && mode < MODES; mode++) {
        if (vector_of(mode) != (uintptr_t)pc) continue;
        bool open = mode && !is_exception(mode) && value_of(registers[mode][EPC]) == vector_of(0) && is_exception(0);
        if (is_exception(mode) || open) put(1), put(value_of(registers[open ? 0 : mode][EPC]));
        if (ending && mode == 0) ending = 0, left = MORE;
    }
}

static void ready(plugin_id id, unsigned cpu) {
    (void)id;
    GArray *all = qemu_plugin_get_registers();
    const qemu_plugin_reg_descriptor *found = (const void *)all->data;
    for (unsigned i = 0; i < all->len; i++)
        for (int at = 0; at < MODES * KINDS && found[i].name; at++) {
            const char *name = names[at % MODES][at / MODES + 1];
            if (name && !strcmp(found[i].name, name)) registers[at % MODES][at / MODES + 1] = found[i].handle;
        }
    bytes = g_byte_array_new();
    char name[sizeof path + 16];
    snprintf(name, sizeof name, "%s.%u", path, cpu);
    out = fopen(name, "wb");
}

static void is_translated(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    uint64_t pc = qemu_plugin_tb_vaddr(tb);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(tb, i);
        if (i == 0) qemu_plugin_register_vcpu_insn_exec_cb(one, block_begins, CB_READS_REGISTERS, (void *)(uintptr_t)pc);
        qemu_plugin_register_vcpu_insn_exec_cb(one, begins, CB_NO_REGISTERS, (void *)(uintptr_t)pc);
        pc += qemu_plugin_insn_size(one);
    }
}

static void ends(plugin_id id, void *unused) {
    (void)id, (void)unused;
    fflush(NULL);
}

__attribute__((visibility("default")))
int qemu_plugin_install(plugin_id id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) snprintf(path, sizeof path, "%s", argv[i] + 4);
        if (!strncmp(argv[i], "from=", 5)) from = strtoull(argv[i] + 5, NULL, 0);
        if (!strncmp(argv[i], "to=", 3)) to = strtoull(argv[i] + 3, NULL, 0);
    }
    if (!*path) return -1;
    qemu_plugin_register_vcpu_init_cb(id, ready);
    qemu_plugin_register_vcpu_tb_trans_cb(id, is_translated);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return 0;
}
