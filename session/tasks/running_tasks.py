"""Who runs in the parts of a history between two switches, as far as it is known, and what follows from that."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.session.tasks.turns import TaskSource

NO_STACK = -1


class TaskKey(NamedTuple):
    """What tells a task from others: two with the same are one. *life*: how many tasks had been made, if its name is
    not known.
    """

    address: int | None
    name: str | None
    id: int | None
    life: int = 0


class RunningTask(NamedTuple):
    """What is known of who runs in a part of the history. *task*: None: none does, or it is not known (*source*).

    stack    the call stack at the end of the part
    context  the number that the trace has for it (scontext); None: none, or several
    user     the same where user mode runs in the part
    changed  it begins where the system certainly went on with another task
    """

    begin: int
    task: TaskKey | None
    source: TaskSource
    stack: int
    context: int | None = None
    user: int | None = None
    changed: bool = False


def by_contexts(
    parts: Sequence[RunningTask], others: Sequence[TaskKey], *, is_number_at_end: bool
) -> list[RunningTask]:
    """Give parts whose task is not known the one that the context of the trace means. *others*: tasks that are known
    besides. *is_number_at_end*: where the trace ends the context is the number of the task that runs.

    A system may write the number of a task into scontext, or anything else: where the task of a part is known, and its
    number is not the context, contexts say nothing. Where no part shows that they are numbers, they are just contexts.
    """
    pairs = [(one.task.id, one.context) for one in parts if one.task is not None and one.context is not None]
    numbered = [(number, context) for number, context in pairs if number is not None]
    if len({one.context for one in parts}) < 2 or any(number != context for number, context in numbered):
        return list(parts)
    of_numbers: dict[int, set[TaskKey]] = defaultdict(set)
    tasks = (*(one.task for one in parts if one.task is not None), *others)
    for task in tasks if numbered or is_number_at_end else ():
        if task.id is not None and task.name is not None:
            of_numbers[task.id].add(task)
    return [_with_context(one, of_numbers) for one in parts]


def _with_context(one: RunningTask, of_numbers: dict[int, set[TaskKey]]) -> RunningTask:
    if one.source is not TaskSource.UNKNOWN or one.context is None:
        return one
    tasks = of_numbers.get(one.context, set())
    task = next(iter(tasks)) if len(tasks) == 1 else TaskKey(None, None, one.context)
    return one._replace(task=task, source=TaskSource.CONTEXT)


def turns_of_parts(parts: Sequence[RunningTask]) -> list[RunningTask]:
    """Put together what follows each other and is of one task: the system looked for another task, and chose none."""
    found: list[RunningTask] = []
    for one in parts:
        if found and not one.changed and _is_same(found[-1], one):
            before = found.pop()
            source = before.source if before.source is one.source else TaskSource.MEMORY
            found.append(one._replace(begin=before.begin, source=source))
        else:
            found.append(one)
    return found


def _is_same(one: RunningTask, other: RunningTask) -> bool:
    if one.task is not None or other.task is not None:
        return one.task == other.task
    return one.source is other.source and (one.source is TaskSource.NONE or one.stack == other.stack)
