"""What stands for Python where a program of rvtrace is started by another program: by gdb, or by a Rig.

It asks the server of `started_python` for a process that has the modules loaded, and behaves as that process: it has
the same standard streams, passes signals on, and ends as it ends. Other programs get the real Python. The server writes
this file, with the line that names the interpreter, and SERVER and PYTHON, before it; it has few imports because they
are what is saved.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import posix
import select
import sys

SERVER, PYTHON = "", ""

COMMANDS = ("sim", "run", "qemu", "encode", "import")
PROGRAMS = (*(["-m", "rvtrace_gdb", name] for name in COMMANDS), ["-I", "-m", "rvtrace_gdb.session"])
"""The beginnings of the command lines that the server knows."""
PASSED_ON = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1)


def main() -> int:
    words = sys.orig_argv[sys.orig_argv.index(sys.argv[0]) + 1 :]
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        if words[:3] not in PROGRAMS:
            raise OSError
        server.connect(SERVER)
    except OSError:  # another program, or the tests are over
        posix.execv(PYTHON, [PYTHON, *words])
    module = words.index("-m") + 1
    request = {
        "module": words[module], "words": words[module + 1 :], "cwd": posix.getcwd(),
        "environ": {name.decode(): value.decode() for name, value in posix.environ.items()}, "open": [True] * 3,
    }  # fmt: skip
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, PASSED_ON)  # one that comes early waits until it can be passed on
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    server.sendmsg([marshal.dumps(request)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    process = int(server.recv(100))

    def pass_on(number: int, _: object) -> None:
        posix.kill(process, number)

    came, tell = posix.pipe()  # a signal that comes just before a wait begins ends it, too
    for end in (came, tell):
        posix.set_blocking(end, False)
    _signal.set_wakeup_fd(tell)
    for number in PASSED_ON:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, pass_on)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
    ready = select.poll()
    for readable in (came, server.fileno()):
        ready.register(readable, select.POLLIN)
    while (came, select.POLLIN) in ready.poll():
        posix.read(came, 100)
    status = int(server.recv(100))
    if status < 0:
        if -status in PASSED_ON:
            _signal.signal(-status, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -status)
    return status


sys.exit(main())
