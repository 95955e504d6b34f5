/* A QEMU plugin that writes down each instruction that begins, from one address to another: what a test compares a
 * decoded trace with. It knows nothing of the recorder of rvtrace, which works by translation blocks.
 *
 *     -plugin executed.so,out=F,from=ADDRESS,to=ADDRESS,handler=ADDRESS
 *
 * Words of 64 bits: an address; or, where a handler begins (of S-mode, and the firmware's at mtvec), 1 and the address
 * at which an exception was raised. Of an interrupt there is no word: what began before it has retired.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../transport/qemu/plugin/qemu.h"

__attribute__((visibility("default"))) int qemu_plugin_version = 3;

enum { FIRMWARE = 0x80000000, FIRMWARE_END = 0x80080000 };
static uint64_t from, to, handler;
static const char *epcs[2] = {"sepc", "mepc"}, *causes[2] = {"scause", "mcause"};
static struct qemu_plugin_register *epc[2], *cause[2], *vector;
static GByteArray *bytes;
static FILE *out;
static int on;

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
    if (on && (uintptr_t)pc == to) on = 0, fflush(out);
}

static void handler_begins(unsigned cpu, void *pc) {
    (void)cpu;
    int mode = (uintptr_t)pc != handler;
    if (mode && (value_of(vector) & ~3ul) != (uintptr_t)pc) return;
    if (on && (int64_t)value_of(cause[mode]) >= 0) put(1), put(value_of(epc[mode]));
}

static void ready(plugin_id id, unsigned cpu) {
    (void)id, (void)cpu;
    GArray *all = qemu_plugin_get_registers();
    const qemu_plugin_reg_descriptor *found = (const void *)all->data;
    for (unsigned i = 0; i < all->len; i++)
        for (int mode = 0; mode < 2 && found[i].name; mode++) {
            if (!strcmp(found[i].name, epcs[mode])) epc[mode] = found[i].handle;
            if (!strcmp(found[i].name, causes[mode])) cause[mode] = found[i].handle;
        }
    for (unsigned i = 0; i < all->len; i++)
        if (found[i].name && !strcmp(found[i].name, "mtvec")) vector = found[i].handle;
    bytes = g_byte_array_new();
}

static void is_translated(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    uint64_t pc = qemu_plugin_tb_vaddr(tb);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(tb, i);
        if (pc == handler || (i == 0 && pc >= FIRMWARE && pc < FIRMWARE_END))
            qemu_plugin_register_vcpu_insn_exec_cb(one, handler_begins, CB_READS_REGISTERS, (void *)(uintptr_t)pc);
        qemu_plugin_register_vcpu_insn_exec_cb(one, begins, CB_NO_REGISTERS, (void *)(uintptr_t)pc);
        pc += qemu_plugin_insn_size(one);
    }
}

static void ends(plugin_id id, void *unused) {
    (void)id, (void)unused;
    fflush(out);
}

__attribute__((visibility("default")))
int qemu_plugin_install(plugin_id id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) out = fopen(argv[i] + 4, "wb");
        if (!strncmp(argv[i], "from=", 5)) from = strtoull(argv[i] + 5, NULL, 0);
        if (!strncmp(argv[i], "to=", 3)) to = strtoull(argv[i] + 3, NULL, 0);
        if (!strncmp(argv[i], "handler=", 8)) handler = strtoull(argv[i] + 8, NULL, 0);
    }
    if (!out) return -1;
    qemu_plugin_register_vcpu_init_cb(id, ready);
    qemu_plugin_register_vcpu_tb_trans_cb(id, is_translated);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return 0;
}
