"""Where the stacks of tasks are, for what looks at sp."""

from collections.abc import Iterator

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

    def room(self, sp: int, position: int, within: PlacedObject | None) -> TaskRoom | None:
        """Return the room of the stack that sp is on behind a position; None: that is none of a task that is known.
        *within*: the object, or section, that sp is in: that of a task's stack, too.
        """
        task = self._task_of_stack(position)
        room = None if task is None else self._turns.tasks[task].room
        if task is None or room is None or within is None:
            return None
        if not room.start <= sp <= room.stop or not within.start <= room.start < room.stop <= within.end:
            return None
        return TaskRoom(room.start, room.stop, f"task {self._turns.labels[task]}")

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
