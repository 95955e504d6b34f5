"""What a simulated hart did, instruction by instruction; and its calls and traps, found by the registers.

A call lasts from a function's first instruction to the first one at its return address with the stack pointer that it
had. A trap lasts from the handler's first instruction to the one after its `mret`.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.session.board import board

MCAUSE, MRET = 0x342, 0x3020_0073
RA, SP = 1, 2


class Retired(NamedTuple):
    """An instruction that retired, with the hart as it was before it, and the causes of the traps right before it."""

    pc: int
    time: int
    ra: int
    sp: int
    code: int
    traps: tuple[int, ...] = ()


class Observer:
    """Sees each instruction of a hart retire, and each trap: a `Witness` of the simulated hart."""

    def __init__(self, hart: Hart) -> None:
        self._hart = hart
        self.run: list[Retired] = []
        self._traps: list[int] = []

    def begins(self) -> None:
        self._note()

    def ends(self) -> None:
        pass

    def _note(self) -> None:
        hart = self._hart
        self._before = (hart.elapsed, hart.x[RA], hart.x[SP])

    def retired(self, block: HartBlock) -> None:
        self.run.append(Retired(block.pcs[0], *self._before, block.words[0], tuple(self._traps)))
        self._traps.clear()
        self._note()

    def trapped(self, trap: TrapEntry) -> None:
        self._traps.append(self._hart.csr_read(MCAUSE))
        self._note()

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        pass

    def register_written(self, regno: int) -> None:
        pass

    def resumed(self) -> None:
        pass

    def reset(self) -> None:
        pass


def calls(run: Sequence[Retired], function: int) -> list[tuple[int, int]]:
    """The calls of a function that return: (first instruction, the one after the last)."""
    steps = enumerate(pairwise(run), 1)
    entered = [at for at, (before, here) in steps if here.pc == function and _is_call(before, here)]
    ends = ((at, next((k for k in range(at + 1, len(run)) if _is_back(run[k], run[at])), None)) for at in entered)
    return [(at, end) for at, end in ends if end is not None]


def _is_call(before: Retired, here: Retired) -> bool:
    """Not a round of a loop: the return address is right behind the instruction before, which is 2 or 4 bytes."""
    return here.ra - before.pc in (2, 4)


def _is_back(here: Retired, entry: Retired) -> bool:
    return here.pc == entry.ra and here.sp == entry.sp


def traps(run: Sequence[Retired], cause: int) -> list[tuple[int, int]]:
    """The traps with a cause that return."""
    waiting: list[tuple[int, int]] = []
    found = []
    for at, here in enumerate(run):
        if at and run[at - 1].code == MRET and waiting:
            begin, why = waiting.pop()
            found += [(begin, at)] if why == cause else []
        waiting += [(at, why) for why in here.traps]
    return sorted(found)


def traced(elf: Path, folder: Path, instructions: int) -> tuple[SelectedHistory, list[Retired]]:
    """The history of a program from its beginning, with times, and what the hart that was traced has done."""
    made = board(folder, elf)
    session, context = Session(connect=made.connect), made.describe()
    session.start(context, {"timestamps": True})
    made.machine.hart.witness = observer = Observer(made.machine.hart)
    made.run(instructions)
    session.stop(context=context)
    return session.selected(context), observer.run
