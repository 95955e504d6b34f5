"""What all streams of bytes have in common, and what can be wrong with one."""

from typing import Protocol

from rvtrace_gdb.support.errors import RvtraceError

PIECE = 1 << 16
"""Bytes read at once at most."""


class NoStream(RvtraceError):
    """A stream that cannot be opened. *name*: what the user calls it; *problem*: why."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


class StreamLost(NoStream):
    """A stream that broke off, after bytes that are sound."""


class Stream(Protocol):
    """Bytes that arrive. *name*: what the user calls it; *kind*: what it is, for messages.

    *endless*: it has no end of its own. *lasting*: its bytes stay there, however late they are read.
    """

    name: str
    kind: str
    endless: bool
    lasting: bool

    def read(self, wait: float) -> bytes | None:
        """What has come; b"" if nothing has within *wait* seconds, None at the end. Raises StreamLost."""
        ...

    def notices(self) -> list[str]:
        """What the user must know and was not told yet, a line each."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
