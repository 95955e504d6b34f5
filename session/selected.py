"""What the parts of a session that look at a history, or go back in it, need to know of each other."""

from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.history import History

OVERWRITTEN = "Older trace was overwritten: it may have been before that."
_EARLIER = "; older trace was overwritten: it may have been before that"


class Selected(NamedTuple):
    """The history that a request is about.

    hart     whose history it is
    program  the programs in all contexts, `program.base` the one that gdb knows
    lines    for the user, said once: of a read-out that failed, of a program that is another one
    overwritten  older trace was overwritten: what is not in the history may have run before it
    """

    history: History
    program: ContextImages
    hart: int
    lines: list[str]
    overwritten: bool = False

    def unless_earlier(self, nothing: str) -> str:
        """*nothing*: that something did not happen in the history; with what that leaves open."""
        return f"{nothing} {OVERWRITTEN}" if self.overwritten else nothing

    def earlier(self) -> str:
        """The same behind words that are no sentence."""
        return _EARLIER if self.overwritten else ""


class Debugger(Protocol):
    """A debugger that goes back in time. *resumes*: how often it let the target run. *connected*: it is there."""

    @property
    def resumes(self) -> int: ...

    @property
    def connected(self) -> bool: ...

    @property
    def has_target(self) -> bool:
        """Whether there is one besides the trace."""

    def away(self) -> bool:
        """Whether it is in the past."""

    def close(self) -> None: ...
