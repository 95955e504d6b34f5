"""The beginning of the program `rvtrace`: Ctrl-C ends it at once and without a word, while Python still loads it.

Loading takes a fifth of a second, in which KeyboardInterrupt would be raised anywhere, and Python would print where.
`console.main` takes over once it knows what is to be done.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as in the background
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the program and return its exit status."""
    from rvtrace_gdb.console.main import main as run

    return run()
