"""Where the user is in the past: a place in the history of each hart, and how one gets from place to place.

The proxy (`session.proxy`) asks this when gdb steps and runs backward and forward; `trace goto` does, too.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from rvtrace_gdb.support.progress import Progress


class Watchpoint(NamedTuple):
    """*kind*: "watch" for stores, "rwatch" for loads, "awatch" for both, to one of *size* bytes at *address*."""

    kind: str
    address: int
    size: int


Watchpoints = frozenset[Watchpoint]
NO_WATCHPOINTS: Watchpoints = frozenset()


class Hit(NamedTuple):
    """A watchpoint that triggers at *position*; *address*: one of its bytes, which was accessed.

    Forward that is before the instruction that makes the access, backward behind it: gdb, which takes it that RISC-V
    harts stop before an access, makes one more step in the same direction, without watchpoints, and compares then.
    """

    position: int
    kind: str
    address: int


class Stop(NamedTuple):
    """Why a walk through the past ended.

    at_end  "begin" or "end" of the history where it came to one, else ""
    lines   for the user: what was passed of which the trace does not say what ran
    hit     the watchpoint that ended it
    """

    at_end: str = ""
    lines: tuple[str, ...] = ()
    hit: Hit | None = None


class Registers(NamedTuple):
    """Which registers a trace tells, besides pc and the integer registers.

    flen  bits of the floating-point registers, 0 without any
    csrs  numbers by gdb's names
    """

    flen: int
    csrs: Mapping[str, int]


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

    def sees_accesses(self, hart: int | None) -> bool:
        """Whether watchpoints can trigger: where a hart is, the trace says what its loads and stores accessed."""

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> Stop:
        """One instruction, *direction* 1 or -1; over gaps. Not over a hit of a watchpoint."""

    def step_within(
        self,
        hart: int | None,
        direction: int,
        addresses: range,
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> Stop:
        """At least one instruction, and on as long as the next one is in *addresses*, or to a hit of a watchpoint."""

    def run(
        self,
        hart: int | None,
        direction: int,
        breakpoints: frozenset[int],
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> Stop:
        """To the next instruction (but this one) that has a breakpoint, or the nearest hit of a watchpoint, which may
        be right here. Raises what *progress* does, and then has gone some of the way, or none.
        """

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """The values known where a hart is, by gdb's name of the register: pc, and what the trace has besides."""

    def told(self, hart: int | None) -> Registers | None:
        """Which registers may be known in a hart's past, None: pc alone."""

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """What is known to have been in memory: code and constants, and what the trace has besides. Fewer bytes where
        not all is, b"" for none.
        """

    def joins(self, hart: int | None, pc: int) -> str:
        """A line for the user if what ran last of what is known does not lead to *pc*, where the program is now."""
