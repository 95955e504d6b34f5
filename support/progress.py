"""Progress of long work, without knowing who watches.

Long work takes a `Progress` and calls it now and then (a few times a second is enough). The watcher draws it, ignores
it, or raises `support.errors.Cancelled` from it to stop the work; so one hook serves both "show" and "interrupt".
"""

from typing import Protocol


class Progress(Protocol):
    """*done* of *total*, None: not known.

    A label may end with the unit in brackets, "encoding (instructions)"; without one it is bytes. (ms), and (parts), of
    which only the share means something, are units too. Where there is nothing to count, *done* is 0, *total* None.
    """

    def __call__(self, label: str, done: int, total: int | None = None) -> None: ...


def silent(label: str, done: int, total: int | None = None) -> None:
    """The watcher nobody asked for."""
