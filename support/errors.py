"""The root of rvtrace's exceptions.

A user sees `str(error)`, one line, never a traceback: it names what is wrong, where (byte offset, register, address,
file) and what to do. Leaves live in the room that raises them and keep their facts as attributes.
"""


class RvtraceError(Exception):
    """Anything the user can be told in one line."""


class Cancelled(RvtraceError):
    """The user interrupted long work (Ctrl-C). What was already captured is kept."""

    def __init__(self, what: str = "interrupted") -> None:
        super().__init__(what)
