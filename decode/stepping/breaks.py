"""Places of a trace about which somebody knows more than the trace says: how it goes on where bytes of it are missing,
and which thread an operating system ran there.
"""

from enum import StrEnum

UNKNOWN_THREAD = (1 << 32) - 1
"""In place of the ID of a thread: one runs, and nobody knows which."""


class BreakKind(StrEnum):
    """What is known of the bytes behind a break."""

    ANYWHERE = "anywhere"
    """They may begin inside a message."""
    MESSAGE = "message"
    """They begin with a message."""
    RESTART = "restart"
    """They begin with a message, and the encoder was stopped before: nothing is missing where it says so itself."""
