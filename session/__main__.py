"""`python -I -m rvtrace_gdb.session`: a trace session as a process, for gdb. `session.rpc.server` has the protocol."""

import logging
import os
import signal
import sys
import tempfile
from contextlib import suppress
from io import TextIOWrapper

from rvtrace_gdb.support.system import frozen_startup


class _LogFile(logging.FileHandler):
    """A log file that is created with the first entry, readable by its owner only, under a name that nobody can
    predict: other users write to the folder, too. `str()`: its name.
    """

    def __init__(self) -> None:
        super().__init__(os.devnull, delay=True)
        self.baseFilename = "no log file (it could not be created)"

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry. If there can be no file, the session continues without."""
        with suppress(OSError):
            super().emit(record)

    def _open(self) -> TextIOWrapper:
        number, self.baseFilename = tempfile.mkstemp(".log", f"rvtrace-session-{os.getpid()}-")
        return open(number, "w", encoding="utf-8", errors="backslashreplace")

    def __str__(self) -> str:
        return self.baseFilename


def main() -> int:
    """Serve standard input and output until input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for gdb, which then cancels by a request
    if hasattr(signal, "pthread_sigmask"):  # not on Windows; gdb starts the session with SIGINT blocked
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.setswitchinterval(0.0005)  # seconds: gdb's packets must not wait for other work
    with frozen_startup():
        from rvtrace_gdb.session.rpc.server import SessionServer
        from rvtrace_gdb.session.session import Session
    # The output of a library must not get between the answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        # The file is left behind only after an internal error; other errors are reported to the user.
        log_file = _LogFile()
        logging.basicConfig(handlers=[log_file], level=logging.ERROR)
        SessionServer(Session(), sys.stdin.buffer, answers, log_file).run()
        logging.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
