"""Who ran at a place of a history: a task of an operating system, a process and a thread of Linux."""

from __future__ import annotations

from typing import NamedTuple


class RunningThread(NamedTuple):
    """Who ran. None: not known, or there is none.

    task     the task of an operating system, by what tells it from others
    process  the process of Linux, its number and name as `--process` takes them
    thread   the thread of it, if it is another one
    """

    task: str | None = None
    process: str | None = None
    thread: str | None = None

    @property
    def text(self) -> str:
        """The words for it, as in "in process 100 (it), thread 101 (my worker)"; "" if nothing is known."""
        words = ", ".join(f"{word} {label}" for word, label in zip(self._fields, self) if label)
        return f"in {words}" if words else ""

    @property
    def fields(self) -> dict[str, str]:
        """What is known of it, as fields for programs."""
        return {name: label for name, label in zip(self._fields, self) if label}
