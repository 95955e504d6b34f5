"""What a simulated hart did, instruction by instruction; and its calls and traps, found by the registers.

A call lasts from a function's first instruction, which a trap may delay, up to what runs after the return to its return
address with the stack pointer that it had, or after the return of a `longjmp` that gives its stack away. A trap lasts
from the handler's first instruction to the one after its `mret`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.session.board import board

MCAUSE, MRET = 0x342, 0x3020_0073
RETURNS = (0x8082, 0x8067)
INTERRUPT = 1 << 63
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

    def halted(self, cause: DebugCause) -> None:
        pass

    def resumed(self) -> None:
        pass

    def reset(self) -> None:
        pass


def calls(
    run: Sequence[Retired], function: int, size: int = 0, longjmp: range = range(0)
) -> list[tuple[int, int]]:
    """The calls of a function that return: (first instruction, the one after the last). *size*: of the function in
    bytes, to know what jumps to it from elsewhere; *longjmp*: the code that unwinds.
    """
    began = {end: begin for begin, end, _ in returned_traps(run)}
    found = []
    for at, here in enumerate(run):
        if here.pc != function or not at:
            continue
        before = run[at - 1]
        if began.get(at):  # the first instruction, if what was hit by the trap had led there
            before = run[began[at] - 1]
        outside = size and before.pc not in range(function, function + size)
        if not (_is_call(before, here) or outside) or (before.code == MRET and not before.traps):
            continue
        returns = (k for k in range(at + 1, len(run)) if _ends(run[k - 1], here, longjmp))
        found += [(at, end) for end in (next(returns, None),) if end is not None]
    return found


def _is_call(before: Retired, here: Retired) -> bool:
    """Not a round of a loop: the return address is right behind the instruction before, which is 2 or 4 bytes."""
    return here.ra - before.pc in (2, 4)


def _ends(last: Retired, entry: Retired, longjmp: range) -> bool:
    """Whether an instruction is a return that ends a call."""
    if last.code not in RETURNS:
        return False
    return (last.ra == entry.ra and last.sp == entry.sp) or (last.pc in longjmp and last.sp >= entry.sp)


def interrupts(run: Sequence[Retired]) -> list[tuple[int, int]]:
    """The interrupts that return."""
    return sorted((begin, end) for begin, end, why in returned_traps(run) if why >= INTERRUPT)


def returned_traps(run: Sequence[Retired]) -> list[tuple[int, int, int]]:
    """The traps that return, with their causes."""
    waiting: list[tuple[int, int]] = []
    found = []
    for at, here in enumerate(run):
        if at and run[at - 1].code == MRET and waiting:
            begin, why = waiting.pop()
            found.append((begin, at, why))
        waiting += [(at, why) for why in here.traps]
    return found


def traced(elf: Path, folder: Path, instructions: int) -> tuple[SelectedHistory, list[Retired]]:
    """The history of a program from its beginning, with times, and what the hart that was traced has done."""
    made = board(folder, elf)
    session, context = Session(connect=made.connect), made.describe()
    session.start(context, {"timestamps": True})
    made.machine.hart.witness = observer = Observer(made.machine.hart)
    made.run(instructions)
    session.stop(context=context)
    return session.selected(context), observer.run
