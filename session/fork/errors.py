"""What goes wrong with forks."""

from rvtrace_gdb.support.errors import RvtraceError


class NoFork(RvtraceError):
    """There is nothing that could go on."""
