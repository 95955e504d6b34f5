"""Who runs in parts of a history by the context that the trace has where user mode runs.

Linux writes no number of a task into scontext by itself. What a trace then has as context is the number of the address
space, as in QEMU; of user mode alone, for the kernel runs in any. A thread of the kernel has none, and keeps the one
that it finds. Drivers for trace hardware write the number of the task instead. Which of the two it is, the end of the
trace may show, where it is known which task runs; as long as it does not, only what both mean is said.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.tasks.reader import ListedTask
from rvtrace_gdb.session.tasks.running_tasks import RunningTask, TaskKey
from rvtrace_gdb.session.tasks.turns import TaskSource

_USER = 0


class ContextMeaning(NamedTuple):
    """What the number of a context may be."""

    is_task: bool = True
    is_space: bool = True

    def without(self, context: int, task: ListedTask) -> "ContextMeaning":
        """Return what is left of it, where a task runs in a context."""
        is_space = self.is_space and (task.space is None or task.space == context)
        return ContextMeaning(self.is_task and task.id == context, is_space)


def has_user_mode(history: History) -> bool:
    """Return whether it is known where user mode runs, and in which contexts."""
    return any(context.prv == _USER and context.scontext is not None for _, context in history.contexts)


def user_contexts(history: History, begins: Sequence[int]) -> Iterator[int | None]:
    """Yield for each part of a history the context in which user mode runs there; None: it does not, or in several."""
    contexts, length = history.contexts, len(history)
    for begin, end in pairwise([*begins, length]):
        first = max(bisect_right(contexts, begin, key=itemgetter(0)) - 1, 0)
        last = bisect_right(contexts, end - 1, key=itemgetter(0))
        found = {it.scontext for _, it in contexts[first:last] if it.prv == _USER}
        yield found.pop() if len(found) == 1 else None


def by_user_contexts(
    parts: Sequence[RunningTask], tasks: Sequence[ListedTask], meaning: ContextMeaning, steady: int
) -> list[RunningTask]:
    """Give parts whose task is not known the one that the context of their user mode means. *tasks*: those that there
    are where the trace ends; *steady*: from there on, no task was made or has ended.
    """
    of_numbers = {it.id: it for it in tasks if it.id is not None}
    of_spaces = _by_space(tasks)
    found = []
    for one in parts:
        if one.source is not TaskSource.UNKNOWN or one.user is None:
            found.append(one)
            continue
        meant = [of_numbers.get(one.user)] if meaning.is_task else []
        meant += [of_spaces.get(one.user)] if meaning.is_space else []
        task = meant[0] if meant and one.begin >= steady and all(it is meant[0] for it in meant) else None
        key = TaskKey(None, None, one.user) if task is None else TaskKey(task.address, task.name, task.id)
        found.append(one._replace(task=key, source=TaskSource.CONTEXT))
    return found


def _by_space(tasks: Sequence[ListedTask]) -> Mapping[int, ListedTask]:
    found: dict[int, ListedTask] = {}
    several = set[int]()
    for task in tasks:
        if task.space is not None and found.setdefault(task.space, task) is not task:
            several.add(task.space)
    return {space: task for space, task in found.items() if space not in several}
