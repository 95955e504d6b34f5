"""What the stub refuses, and that it is gone: rvtrace asks it for what a command needs, and can do without an answer.

Who asks first notices that a connection has ended, and gdb then forgets the target: it says so once, to whoever asked.
So rvtrace says it in gdb's place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext.client import defer_interrupt
from rvtrace_gdb.gdbext.text import print_line


@contextlib.contextmanager
def refusals_suppressed() -> Iterator[None]:
    """A context for questions to the stub, which Ctrl-C interrupts at its end: a refusal ends it, without an error. If
    gdb has lost the connection, what gdb says of that is printed.
    """
    with defer_interrupt():
        try:
            yield
        except gdb.error as error:
            if not gdb.selected_inferior().pid:
                print_line(error)
