"""Where the stacks of tasks are, for what looks at sp."""

from rvtrace_gdb.decode.program.layout import PlacedObject
from rvtrace_gdb.session.tasks.turns import TaskTurns


class TaskRoom(PlacedObject):
    """The room of the stack of a task, with the name of that."""


class TaskRooms:
    """The stacks of the tasks of a hart. A task that is made in the memory of another one has other bounds, so a room
    counts only while that very task runs.
    """

    def __init__(self, turns: TaskTurns) -> None:
        self._turns = turns

    def room(self, sp: int, position: int, within: PlacedObject | None) -> TaskRoom | None:
        """Return the room of the stack that sp is on behind a position; None: that is none of a task that is known.
        *within*: the object, or section, that sp is in: that of a task's stack, too.
        """
        task = self._turns.turn_at(position).task
        room = None if task is None else self._turns.tasks[task].room
        if task is None or room is None or within is None:
            return None
        if not room.start <= sp <= room.stop or not within.start <= room.start < room.stop <= within.end:
            return None
        return TaskRoom(room.start, room.stop, f"task {self._turns.labels[task]}")
