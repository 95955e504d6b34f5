"""Where the user is in the past: a place in the history of each hart, and how one gets from place to place.

The proxy (`session.proxy`) asks this when gdb steps and runs backward and forward; `trace goto` does, too.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from support.progress import Progress


class Stop(NamedTuple):
    """Why a walk through the past ended.

    at_end  "begin" or "end" of the history where it came to one, else ""
    lines   for the user: what was passed of which the trace does not say what ran
    """

    at_end: str = ""
    lines: tuple[str, ...] = ()


class Past(Protocol):
    """What the proxy needs of the past. *hart*: the hart of gdb's thread, None where threads are no harts.

    A position is that of `decode.history`: of the instruction that runs next; the length of the history stands for the
    present, as it is seen from the past: all has run. A hart that is not in the past has no position.
    """

    def enter(self, hart: int | None, progress: Progress) -> None:
        """Reads out the trace and decodes it; the position is behind its end. Raises RvtraceError."""

    def leave(self) -> None:
        """Back to the present, with all harts."""

    def position(self, hart: int | None) -> int | None:
        """Where a hart is, None in the present."""

    def away(self) -> bool:
        """Whether any hart is in the past."""

    def is_at_end(self, hart: int | None) -> bool:
        """Whether all has run where this hart is: what the target says now is right there, too."""

    def go_to(self, hart: int | None, position: int) -> None:
        """Into the past, at a position of its history as it was decoded last. Raises RvtraceError."""

    def step(self, hart: int | None, direction: int) -> Stop:
        """One instruction, *direction* 1 or -1; over gaps."""

    def step_within(self, hart: int | None, direction: int, addresses: range, progress: Progress) -> Stop:
        """At least one instruction, and on as long as the next one is in *addresses*."""

    def run(self, hart: int | None, direction: int, breakpoints: frozenset[int], progress: Progress) -> Stop:
        """To the next instruction (but this one) that has a breakpoint. Raises what *progress* does, and then has gone
        some of the way, or none.
        """

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """The values known where a hart is, by gdb's name of the register: pc, and what the trace has besides."""

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """What is known to have been in memory: code and constants. Fewer bytes where not all is, b"" for none."""

    def joins(self, hart: int | None, pc: int) -> str:
        """A line for the user if what ran last of what is known does not lead to *pc*, where the program is now."""
