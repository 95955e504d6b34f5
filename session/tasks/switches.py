"""Where another task may begin to run in a history: behind each end of a switch function, by the flow alone.

A turn begins with the first instruction behind the switch function: in the trap's handler that called it, if it was
called there. So what a handler does before the switch, and how a task's registers are saved, counts in the turn of the
task that was interrupted; how registers are restored, in that of the task that goes on.
"""

from collections.abc import Iterable, Iterator, Sequence

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.decode.search import ExecutionSearch, executions
from rvtrace_gdb.support.errors import Progress

_CALLS = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL, IType.COROUTINE_SWAP})
_LONGEST = 1 << 16
"""Bytes of a function that are looked at."""


def ends_of(function: int, image: Image) -> Iterator[int]:
    """Yield the addresses of the instructions with which a function may end: those that jump elsewhere, calls
    excepted, and its last one.
    """
    start, pc, last = image.function(function), function, function
    while pc < function + _LONGEST and image.function(pc) == start:
        try:
            instruction = image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return
        if _leaves(instruction, pc, start, image):
            yield pc
        last, pc = pc, pc + instruction.length
    yield last


def _leaves(instruction: Instruction, pc: int, start: int | None, image: Image) -> bool:
    if instruction.itype in _CALLS:
        return False
    if instruction.is_branch or instruction.is_inferable_jump:
        return instruction.offset is not None and image.function(pc + instruction.offset) != start
    return instruction.is_uninferable


def ends_in(
    calls: CallHistory, image: Image, functions: Iterable[int], progress: Progress
) -> list[int]:
    """Return the positions behind each end of some functions, in order. Raises what *progress* raises."""
    history = calls.history
    starts = set(functions)
    addresses = {end: start for start in starts for end in ends_of(start, image)}
    if not addresses:
        return []
    search = ExecutionSearch(calls, executions(*addresses), progress)
    length = len(history)
    found = (at for at in search.positions(progress) if at + 1 < length)
    return [at + 1 for at in found if _is_left(history.pc(at), history.pc(at + 1), image)]


def entries_by_jump(
    calls: CallHistory, image: Image, functions: Iterable[int], progress: Progress
) -> list[int]:
    """Return the positions at which some functions were called or jumped to, in order: a label in the middle of code is
    passed, too. Raises what *progress* raises.
    """
    history, starts = calls.history, set(functions)
    if not starts:
        return []
    found = executions_of(calls, starts, progress)
    return [at for at in found if at and not _follows(history.pc(at - 1), history.pc(at), image)]


def executions_of(calls: CallHistory, addresses: Iterable[int], progress: Progress) -> Sequence[int]:
    """Return the positions of the instructions at some addresses, in order. Raises what *progress* raises."""
    wanted = set(addresses)
    return ExecutionSearch(calls, executions(*wanted), progress).positions(progress) if wanted else ()


def _follows(pc: int, following: int, image: Image) -> bool:
    """Return whether an instruction follows another one in memory."""
    try:
        return pc == GAP or pc + image.instruction(pc).length == following
    except (CodeMissing, UndecodableInstruction):
        return True


def _is_left(pc: int, following: int, image: Image) -> bool:
    return following == GAP or image.function(pc) != image.function(following)


def gap_borders(positions: Sequence[int], length: int) -> Iterator[int]:
    """Yield where gaps begin, and where what follows them does."""
    for at in positions:
        yield at
        if at + 1 < length:
            yield at + 1
