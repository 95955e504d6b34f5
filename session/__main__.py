"""`python -I -m session`: one trace session as a process, for gdb. The protocol is described in `session.server`."""

import logging
import os
import signal
import sys
import tempfile
from pathlib import Path

from support.starting import starting


def main() -> int:
    """Serve standard input and output until input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for gdb, which then cancels by a request
    sys.setswitchinterval(0.0005)  # seconds: gdb's packets must not wait for what is worked on beside them
    with starting():
        from session.server import Server
        from session.session import Session
    # What a library may print must not get between the answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        log_file = Path(tempfile.gettempdir()) / f"rvtrace-session-{os.getpid()}.log"
        # Only of errors of ours a file is left behind; what else there is to say is said to the user.
        logging.basicConfig(handlers=[logging.FileHandler(log_file, delay=True)], level=logging.ERROR)
        Server(Session(), sys.stdin.buffer, answers, log_file).run()
        logging.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
