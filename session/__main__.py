"""`python -I -m rvtrace_gdb.session`: a trace session as a process, for gdb. `session.rpc.server` has the protocol."""

import logging
import os
import signal
import sys
import tempfile
from contextlib import suppress
from io import TextIOWrapper

from rvtrace_gdb.support.system import starting


class _LogFile(logging.FileHandler):
    """Made when something is logged, for its owner alone, under a name nobody can foresee: others write to the folder,
    too. `str()`: its name.
    """

    def __init__(self) -> None:
        super().__init__(os.devnull, delay=True)
        self.baseFilename = "these words, for no log file could be made"

    def emit(self, record: logging.LogRecord) -> None:
        """Where there can be no file, the session goes on without."""
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
    sys.setswitchinterval(0.0005)  # seconds: gdb's packets must not wait for what is worked on beside them
    with starting():
        from rvtrace_gdb.session.rpc.server import Server
        from rvtrace_gdb.session.session import Session
    # What a library may print must not get between the answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        # Only of errors of ours a file is left behind; what else there is to say is said to the user.
        log_file = _LogFile()
        logging.basicConfig(handlers=[log_file], level=logging.ERROR)
        Server(Session(), sys.stdin.buffer, answers, log_file).run()
        logging.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
