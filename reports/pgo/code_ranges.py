"""What ran as ranges of consecutive instructions and as branches, as a sampling profiler has it from branch records."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts

_GO_ON = frozenset({IType.NONE, IType.EXCEPTION, IType.INTERRUPT})


class CodeRange(NamedTuple):
    """The instructions from *first* to *last* ran so many *times*, in a row."""

    first: int
    last: int
    times: int


class TakenBranch(NamedTuple):
    """The program went from *source* to *target*, which does not follow it, so many *times*."""

    source: int
    target: int
    times: int


def code_ranges(program: ProgramCounts) -> Iterator[CodeRange]:
    """Yield the ranges of all that ran, by address: the count of each instruction is that of the only range that it is
    in. A range ends where the flow may, and where a function begins.
    """
    first = last = -1
    following = -1  # what follows the last instruction of the range, -1 if it ends there
    for pc in sorted(program.ran):
        times = program.ran[pc]
        if first >= 0 and (pc != following or times != program.ran[first] or program.is_start(pc)):
            yield CodeRange(first, last, program.ran[first])
            first = -1
        first, last = (pc if first < 0 else first), pc
        instruction = program.instruction(pc)
        ends = instruction is None or instruction.itype is not IType.NONE or instruction.is_branch
        following = -1 if ends or instruction is None else pc + instruction.length
    if first >= 0:
        yield CodeRange(first, last, program.ran[first])


def taken_branches(program: ProgramCounts) -> Iterator[TakenBranch]:
    """Yield the branches, jumps, calls and returns of all that ran, by address. A jump may lead to what follows it, as
    one through the table of a `switch` does.
    """
    for (source, target), times in sorted(program.steps.items()):
        instruction = program.instruction(source)
        if times > 0 and instruction is not None:
            may_go_on = instruction.is_branch or instruction.itype in _GO_ON
            if target != source + instruction.length or not may_go_on:
                yield TakenBranch(source, target, times)
