"""What the parts of a session that look at a history, or go back in it, need to know of each other."""

from typing import NamedTuple, Protocol

from decode.contexts import ContextImages
from decode.history import History


class Selected(NamedTuple):
    """The history that a request is about.

    hart     whose history it is
    program  the programs in all contexts, `program.base` the one that gdb knows
    lines    for the user, said once: of a read-out that failed, of a program that is another one
    """

    history: History
    program: ContextImages
    hart: int
    lines: list[str]


class Debugger(Protocol):
    """A debugger that goes back in time. *resumes*: how often it let the target run. *connected*: it is there."""

    @property
    def resumes(self) -> int: ...

    @property
    def connected(self) -> bool: ...

    def away(self) -> bool:
        """Whether it is in the past."""

    def close(self) -> None: ...
