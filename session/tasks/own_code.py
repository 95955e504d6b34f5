"""Who runs in parts of a history by the functions that ran: some are run by one task alone.

These are the loop of a hart that has nothing to do, and the function that a thread of the kernel was made for, if it is
that of no other. What they call others call, too, and says nothing.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.session.tasks.reader import ListedTask
from rvtrace_gdb.session.tasks.running_tasks import RunningTask, TaskKey
from rvtrace_gdb.session.tasks.switches import executions_of
from rvtrace_gdb.session.tasks.turns import TaskSource
from rvtrace_gdb.support.errors import Progress

_LONGEST = 1 << 14
"""Bytes of a function that are looked at."""


def entries_of_one_task(tasks: Sequence[ListedTask]) -> dict[int, TaskKey]:
    """Return which task runs a function, by its address: of functions that one task has."""
    times = Counter(it.entry for it in tasks)
    return {it.entry: TaskKey(it.address, it.name, it.id) for it in tasks if it.entry and times[it.entry] == 1}


def by_own_code(
    parts: Sequence[RunningTask], owners: Mapping[int, TaskKey], calls: CallHistory, image: Image, progress: Progress
) -> list[RunningTask]:
    """Give parts whose task is not known the one whose function runs in them. *owners*: by the address of the function.
    Where functions of two tasks ran in a part, they do not say which it is. Raises what *progress* raises.
    """
    if not owners or all(one.source is not TaskSource.UNKNOWN for one in parts):
        return list(parts)
    begins = [one.begin for one in parts]
    found: list[set[TaskKey]] = [set() for _ in parts]
    for function, task in owners.items():
        for at in executions_of(calls, _addresses_in(function, image), progress):
            found[bisect_right(begins, at) - 1].add(task)
    return [_with_owner(one, owning) for one, owning in zip(parts, found, strict=True)]


def _with_owner(one: RunningTask, owning: set[TaskKey]) -> RunningTask:
    if one.source is not TaskSource.UNKNOWN or len(owning) != 1:
        return one
    return one._replace(task=next(iter(owning)), source=TaskSource.CODE)


def _addresses_in(function: int, image: Image) -> Iterator[int]:
    """Yield the addresses of the instructions of a function."""
    pc, start = function, image.function(function)
    while pc < function + _LONGEST and image.function(pc) == start:
        yield pc
        try:
            pc += image.instruction(pc).length
        except (CodeMissing, UndecodableInstruction):
            return
