/* The socket over which a session says what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "plugin.h"

static int listener = -1;

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

/* Signals are for QEMU's main thread, as in qemu_thread_create: one that came here (SIGCONT, for which -serial stdio has
 * a handler) would interrupt the reading of a command, and its sender would take QEMU for gone. */
static bool serves(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = !pthread_create(&thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
}

bool make_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/control", dir);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8)) return false;
    return serves();
}
