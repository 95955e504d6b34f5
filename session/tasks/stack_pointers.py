"""The task whose stack sp is in, where the system's own variables of the time are not known.

Where the trace ends the system's lists say which tasks there are, and where their stacks are. As long as no task was
made or ended since, these were the tasks, and a task runs on its own stack. sp is asked for where the task itself runs:
where it is interrupted, or calls what switches, and behind the return from the trap in which the switch to it happened.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.session.tasks.reader import ListedTask, TaskReader
from rvtrace_gdb.session.tasks.turns import AtEnd

MOST = 200_000
"""Positions before the end of the trace in which sp is asked for: each part of the history is worked out for it."""
_RESTORE = 1 << 10
"""Instructions of a handler behind a switch that are looked at for its return."""


class TaskStacks:
    """Finds tasks by their stacks. *at_end*: the tasks that there are where the trace ends."""

    def __init__(
        self, reader: TaskReader, history: History, frames: CallFrames, image: Image, at_end: AtEnd
    ) -> None:
        self._reader, self._history, self._frames, self._image = reader, history, frames, image
        self._tasks = sorted((it.stack, it) for it in at_end.tasks if it.stack)
        self._begins = [begin for begin, _ in self._tasks]
        self._are_all = at_end.complete and len(self._tasks) == len(at_end.tasks)

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def task_in(self, begin: int, end: int, steady: int) -> ListedTask | None:
        """Return the task that runs at positions *begin* to *end* - 1, between two switches; None: it is not known.
        *steady*: from there on the tasks are those of the end.
        """
        positions = self._own_positions(begin, end)
        sp = next(filter(None, (self._sp(at) for at in positions if at is None or at >= steady)), None)
        return None if sp is None else self._task_of(sp)

    def last_sp(self, end: int) -> int | None:
        """Return sp where the task itself ran last before *end*, None: that is not known."""
        return self._sp(self._last_position(end))

    def is_stack_of(self, address: int, sp: int, room: range | None) -> bool:
        """Return whether *sp* is in the stack of the task at an address. *room*: where that is, None: not known, as
        where a program of FreeRTOS gives the memory itself, and the stack is not in front of the control block.
        """
        if room is not None:
            return room.start < sp <= room.stop
        task = self._task_of(sp)
        return task is not None and task.address == address

    def _sp(self, position: int | None) -> int | None:
        return None if position is None else self._reader.moment(position).named_register("sp")

    def _task_of(self, sp: int) -> ListedTask | None:
        number = bisect_right(self._begins, sp) - 1
        if number < 0 or (number and self._begins[number] == self._begins[number - 1]):
            return None
        if sp == self._begins[number]:  # all of it is used, or nothing of the one below
            return None
        task = self._tasks[number][1]
        if task.stack_end is None:
            return task if self._are_all else None
        return task if sp <= task.stack_end else None

    def _own_positions(self, begin: int, end: int) -> Iterator[int | None]:
        """Yield positions at which the task itself runs: the last one, and the first one."""
        yield self._last_position(end)
        yield self._first_position(begin, end)

    def _last_position(self, end: int) -> int | None:
        """Return where the task itself was when it was interrupted, or called what switched; at the end of the trace
        that is its end. None: it is not known.
        """
        frames = list(self._frames.frames(end - 1))
        traps = [frame for frame in frames if frame.kind is StackOperationKind.TRAP]
        if traps:
            return None if traps[-1].call is None else traps[-1].call + 1
        if end == len(self._history):
            return end
        return frames[1].call if len(frames) > 1 else None

    def _first_position(self, begin: int, end: int) -> int | None:
        """Return the first position at which the task itself runs, not what was left of the trap in which the system
        switched to it; None: there is none.
        """
        if not begin or self._history.pc(begin) == GAP:
            return None
        stack = self._stack(begin)
        if self._stack(begin - 1) != stack or not self._is_in_trap(begin):
            return begin
        for at in self._trap_returns(begin, min(end, begin + _RESTORE)):
            if at < end and (self._stack(at) != stack or not self._is_in_trap(at)):
                return at
        return None

    def _trap_returns(self, begin: int, end: int) -> Sequence[int]:
        """Return the positions behind returns from traps."""
        pcs = self._history.pcs(begin, end)
        return [at + 1 for at, pc in enumerate(pcs, begin) if self._returns(pc)]

    def _returns(self, pc: int) -> bool:
        try:
            return pc != GAP and self._image.instruction(pc).itype is IType.TRAP_RETURN
        except (CodeMissing, UndecodableInstruction):
            return False

    def _stack(self, position: int) -> int | None:
        return next((frame.stack for frame in self._frames.frames(position)), None)

    def _is_in_trap(self, position: int) -> bool:
        return any(frame.kind is StackOperationKind.TRAP for frame in self._frames.frames(position))
