"""Where the stacks of tasks are, for what looks at sp."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from rvtrace_gdb.decode.program.layout import PlacedObject
from rvtrace_gdb.session.tasks.turns import TaskSource, TaskTurns


class TaskRoom(PlacedObject):
    """The room of the stack of a task, with the name of that."""


class TaskRooms:
    """The stacks of the tasks of a hart. A task that is made in the memory of another one has other bounds, so a room
    counts only while that very task runs.
    """

    def __init__(self, turns: TaskTurns) -> None:
        self._turns = turns

    def label_at(self, position: int) -> str | None:
        """Return the label of the task that runs at a position; None: none, or it is not known which."""
        task = self._turns.turn_at(position).task
        return None if task is None else self._turns.labels[task]

    def room(self, sp: int, position: int, within: PlacedObject | None, *, is_start: bool) -> PlacedObject | None:
        """Return where the stack is that sp is on behind a position: the room of the task that runs, or *within*, the
        object, or section, that sp is in, if that is the stack of no task; None: that is not known. *is_start*: the
        code says that a stack begins at sp.

        Several tasks may have their stacks in one object, a heap: whose stack sp is on is then not known where it is
        not known which task runs, and how long that stack may be is not what the heap has.
        """
        if within is None:
            return None
        task = self._task_of_stack(position)
        room = None if task is None else self._turns.tasks[task].room
        if room is not None and room.start <= sp <= room.stop and _is_in(room, within):
            return TaskRoom(room.start, room.stop, f"task {self._turns.labels[task or 0]}")
        if is_start:
            return within
        is_known = room is not None or self._turns.turn_at(position).source is TaskSource.NONE or self._are_all_known
        return within if is_known and not any(_is_in(it, within) for it in self._stacks) else None

    @cached_property
    def _stacks(self) -> Sequence[range]:
        """The stacks of tasks that are known."""
        listed = (range(it.stack, it.stack_end or it.stack + 1) for it in self._turns.at_end.tasks if it.stack)
        return [*(it.room for it in self._turns.tasks if it.room is not None), *listed]

    @cached_property
    def _are_all_known(self) -> bool:
        """Whether it is known where the stack of each task is that there is in the end."""
        at_end = self._turns.at_end
        return at_end.complete and all(it.stack for it in at_end.tasks)

    def _task_of_stack(self, position: int) -> int | None:
        """Return the index of the task whose stack sp may be on: what starts the first task sets sp before it runs."""
        turn = self._turns.turn_at(position)
        if turn.source is not TaskSource.NONE or turn.end >= self._turns.turns[-1].end:
            return turn.task
        return self._turns.turn_at(turn.end).task

    def below(self, room: TaskRoom, lowest: int, position: int) -> str | None:
        """Return what the stack in a room runs into that got down to *lowest* at a position: the control block or the
        stack of another task that had run; None: into neither.
        """
        near = (it for it in self._memory_of_tasks(position) if it.start < room.start and it.end > lowest)
        found = max((it for it in near if it.end <= room.start), default=None, key=lambda it: it.end)
        return None if found is None else found.name

    def _memory_of_tasks(self, position: int) -> Iterator[PlacedObject]:
        """Yield the stacks and control blocks of the tasks that had run before a position."""
        ran = {turn.task for turn in self._turns.turns if turn.begin <= position and turn.task is not None}
        for task in sorted(ran):
            label, it = self._turns.labels[task], self._turns.tasks[task]
            if it.room is not None:
                yield PlacedObject(it.room.start, it.room.stop, f"the stack of task {label}")
            if it.block is not None:
                yield PlacedObject(it.block.start, it.block.stop, f"the control block of task {label}")


def _is_in(stack: range, within: PlacedObject) -> bool:
    return within.start <= stack.start < stack.stop <= within.end
