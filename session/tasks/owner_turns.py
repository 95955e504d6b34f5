"""Whose call stack runs from where on: what is known of turns without call stacks, for call stacks.

Which task runs in a turn may have been concluded from call stacks (`TaskSource.CALLS`): that says nothing about them.
"""

from typing import TYPE_CHECKING

from rvtrace_gdb.decode.calls.owners import OwnerTurns
from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.tasks.task_system import BadTaskSystem, system_of
from rvtrace_gdb.support.errors import Progress

if TYPE_CHECKING:
    from rvtrace_gdb.session.tasks.turns import TaskTurns


def owner_turns(session: PastSource, selected: SelectedHistory, progress: Progress) -> OwnerTurns:
    """Return the turns of a hart with the number of each task; what runs without a task has a number of its own.

    Nothing if no task is known, and of a trace of several harts: what a task did on another one meanwhile is not known
    here. Raises what *progress* raises.
    """
    try:
        system = system_of(selected.program.base, selected.rtos)
    except BadTaskSystem:  # said where tasks are asked for
        return ()
    if system is None or not len(selected.history):
        return ()
    from rvtrace_gdb.session.tasks.tasks import is_alone, tasks_of  # most programs have no system

    return _owners(tasks_of(session, selected, progress)) if is_alone(session) else ()


def _owners(turns: "TaskTurns") -> OwnerTurns:
    from rvtrace_gdb.decode.calls.frame import UNKNOWN
    from rvtrace_gdb.session.tasks.turns import TaskSource

    known, nobody = (TaskSource.MEMORY, TaskSource.CONTEXT, TaskSource.STACK), len(turns.tasks)
    found = list[tuple[int, int]]()
    for turn in turns.turns:
        task = turn.task if turn.source in known else nobody if turn.source is TaskSource.NONE else None
        found.append((turn.begin, UNKNOWN if task is None else task))
    return found if any(turn.source in known for turn in turns.turns) else ()
