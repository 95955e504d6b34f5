"""What a walk over the program is for, and what it has come to."""

from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.returns import ReturnStack
from rvtrace_gdb.decode.history import Path, RepeatPath
from rvtrace_gdb.decode.segments import NOWHERE, Segment

Part = tuple[int, ...] | Path | RepeatPath


class Arrival(Enum):
    """How a walk came to the address of a packet."""

    INFERRED = "inferred"
    """The code leads there; it may do so again."""
    JUMPED = "jumped"
    """By a jump only the packet tells the target of."""
    RETURNED = "returned"
    """The same, and the jump was a return to where its call came from."""
    FAULT = "fault"
    """Not at all."""


class Goal(NamedTuple):
    """What a packet reports: the address of an instruction that retired; None: the next branch.

    inferable  it may be one the code leads to; else only the target of an uninferable jump
    returns    implicit returns reported (irets, irdepth), None for none
    counted    the packet would say if there were any (irets)
    """

    address: int | None
    inferable: bool = True
    returns: int | None = None
    counted: bool = False


class Walk:
    """One walk so far.

    at        the instruction that retires next, NOWHERE when that is not known
    behind    then: the last one that retired
    irets     implicit returns since the last branch
    outcomes  (address, taken) of the branches that were passed, where a predictor has to know them
    fault     why the code contradicts the trace, "" while it does not; *missing*: because it is not there
    pair      the jump at `at`, whose target the instruction behind it determines
    """

    __slots__ = ("at", "behind", "calls", "fault", "irets", "missing", "outcomes", "pair", "parts")

    def __init__(self, at: int, behind: int, calls: ReturnStack) -> None:
        self.at = at
        self.behind = behind
        self.calls = calls
        self.parts: list[Part] = []
        self.irets = 0
        self.outcomes: list[tuple[int, bool]] = []
        self.fault = ""
        self.missing = False
        self.pair: Segment | None = None

    @property
    def place(self) -> int:
        """Where a fault is: the next instruction if it is known, else the last one."""
        return self.at if self.at != NOWHERE else self.behind

    @property
    def path(self) -> Path | None:
        """The instructions walked, None for none."""
        parts = [part for part in self.parts if len(part)]
        return Path(parts) if parts else None

    def before_last(self) -> Path | None:
        """The instructions walked but for the last one, None for none."""
        parts = [part for part in self.parts if len(part)]
        if not parts:
            return None
        last = parts.pop()
        assert isinstance(last, tuple)  # a walk ends with the instructions that lead to an address
        parts += [last[:-1]] if len(last) > 1 else []
        return Path(parts) if parts else None
