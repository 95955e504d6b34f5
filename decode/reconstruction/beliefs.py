"""What is believed of memory when a history is executed again, and what shows that it does not hold.

One begins with the first of `BELIEFS`, and goes on to the next one where something that was believed is wrong: first no
memory is believed, then no constants of the program either.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.support.errors import RvtraceError


class ImpossibleInstruction(RvtraceError):
    """The instruction at a position cannot have done what the history says."""

    def __init__(self, position: int, pc: int) -> None:
        super().__init__(
            f"instruction {history_number(position)}, at {pc:#x}, cannot have done what the trace says, with the values"
            " that are known there: something else has written registers or memory"
        )
        self.position, self.pc = position, pc


class Belief(NamedTuple):
    """What of memory is believed: the RAM, and the constants of the program."""

    ram: bool = True
    constants: bool = True


BELIEFS = (Belief(), Belief(ram=False), Belief(ram=False, constants=False))
"""In the order in which they are tried."""
