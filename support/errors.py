"""The base class of rvtrace's exceptions, and the progress of long work.

A user sees `str(error)`, one line, never a traceback: it names what is wrong, where (byte offset, register, address,
file) and what to do. Subclasses are defined in the room that raises them and keep their facts as attributes.

Long work takes a `Progress` and calls it now and then (a few times a second is enough), without knowing who watches.
The watcher draws it, ignores it, or raises `Cancelled` from it to stop the work; so one hook serves both "show" and
"interrupt".
"""

from collections.abc import Callable, Generator
from typing import ClassVar, Generic, Protocol, TypeVar

_Result = TypeVar("_Result")


class RvtraceError(Exception):
    """An error that a user understands in one line. *protocol_name*: its kind in the session's protocol, if that is not
    the name of the class.
    """

    protocol_name: ClassVar[str] = ""


class Cancelled(RvtraceError):
    """The user interrupted long work (Ctrl-C). What was already captured is kept.

    *partial*: the bytes that a long read of a transport had read by then.
    """

    partial: bytes = b""

    def __init__(self, what: str = "interrupted") -> None:
        super().__init__(what)


class Progress(Protocol):
    """Receives the progress of long work: *done* of *total*, None: not known.

    A label may end with the unit in brackets, "encoding (instructions)"; without one it is bytes. (ms), and (parts), of
    which only the ratio is meaningful, are units too. If there is nothing to count, *done* is 0, *total* None.
    """

    def __call__(self, label: str, done: int, total: int | None = None) -> None: ...


def silent(label: str, done: int, total: int | None = None) -> None:
    """Ignore the progress."""


class LongWork(Generic[_Result]):
    """Work in pieces, whose result is kept. *make* returns its generator, which yields (label, done, total) for a
    `Progress` after each piece, and returns the result.
    """

    def __init__(self, make: Callable[[], Generator[tuple[str, int, int | None], None, _Result]]) -> None:
        self._make = make
        self._pieces: Generator[tuple[str, int, int | None], None, _Result] | None = None
        self._results: list[_Result] = []  # one, in the end

    def result(self, progress: Progress) -> _Result:
        """Return the result. Raises what *progress* raises, and goes on from there when it is called again; from the
        beginning, if the work itself has failed (out of memory).
        """
        while not self._results:
            pieces = self._pieces or self._make()
            self._pieces = None
            try:
                report = next(pieces)
            except StopIteration as end:
                self._results.append(end.value)
                break
            self._pieces = pieces
            progress(*report)
        return self._results[0]
