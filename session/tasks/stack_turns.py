"""Turns that begin where the call stack of the task goes on: for what is made of call stacks.

A turn begins behind the function that switches (`session.tasks.switches`). Where a trap handler called it, the handler
goes on on the stack of the task before, restores registers and returns: that much is moved to the turn before.
"""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames
from rvtrace_gdb.session.tasks.tasks import known_tasks
from rvtrace_gdb.session.tasks.turns import TaskTurn, TaskTurns
from rvtrace_gdb.support.errors import Progress, silent

_REPORT_EVERY = 1 << 8
_NONE = -1


def known_stack_turns(session: PastSource, selected: SelectedHistory, progress: Progress = silent) -> TaskTurns | None:
    """Return the turns of a hart, see `stack_turns`; None if the program has no operating system that is known. Raises
    BadTaskSystem, and what *progress* raises.
    """
    turns = known_tasks(session, selected, progress)
    return None if turns is None else stack_turns(turns, call_frames(session, selected, progress), progress)


def known_owners(
    session: PastSource, selected: SelectedHistory, progress: Progress = silent
) -> list[tuple[int, str | None]]:
    """Return from which position on which task runs on a hart, by its label, None: none does, or it is not known which;
    nothing if the program has no operating system that is known. Raises as `known_stack_turns`.
    """
    turns = known_stack_turns(session, selected, progress)
    if turns is None:
        return []
    return [(turn.begin, None if turn.task is None else turns.labels[turn.task]) for turn in turns.turns]


def stack_turns(turns: TaskTurns, frames: CallFrames, progress: Progress = silent) -> TaskTurns:
    """Return the same turns, each from where another call stack runs than before it. Raises what *progress* raises."""
    begins = list(_begins(turns.turns, frames, progress))
    ends = [*begins[1:], turns.turns[-1].end]
    moved = [turn._replace(begin=begin, end=end) for turn, begin, end in zip(turns.turns, begins, ends, strict=True)]
    return TaskTurns(turns.system, turns.tasks, moved, turns.at_end, turns.problems)


def _begins(turns: Sequence[TaskTurn], frames: CallFrames, progress: Progress) -> Iterator[int]:
    for number, turn in enumerate(turns):
        if not number % _REPORT_EVERY:
            progress("finding tasks (call stacks)", number, len(turns))
        yield _own_begin(turn, frames) if number else turn.begin


def _own_begin(turn: TaskTurn, frames: CallFrames) -> int:
    """Return where the stack changes for the first time in a turn, by steps that grow, and then by halves. Where it
    does not change, the turn begins on its own.
    """
    old, same, step = _stack(turn.begin, frames), turn.begin, 1
    while same + step < turn.end and _stack(same + step, frames) == old:
        same, step = same + step, 2 * step
    other = same + step
    if other >= turn.end:
        return turn.begin
    while same + 1 < other:
        middle = (same + other) // 2
        same, other = (middle, other) if _stack(middle, frames) == old else (same, middle)
    return other


def _stack(position: int, frames: CallFrames) -> int:
    frame = next(frames.frames(position), None)
    return _NONE if frame is None else frame.stack
