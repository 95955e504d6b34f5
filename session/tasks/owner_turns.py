"""Whose call stack runs from where on: what is known of turns, for call stacks.

A context that no task confirms may be that of a process, whose threads have a stack each: then it is not known.
"""

from typing import TYPE_CHECKING

from rvtrace_gdb.decode.calls.stacks.owners import OwnerTurns
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
    from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
    from rvtrace_gdb.session.tasks.turns import TaskSource

    nobody, found = len(turns.tasks), list[tuple[int, int]]()
    for turn in turns.turns:
        is_known = turn.task is not None and turns.tasks[turn.task].address is not None
        owner = turn.task if is_known else nobody if turn.source is TaskSource.NONE else None
        found.append((turn.begin, UNKNOWN if owner is None else owner))
    return found if any(0 <= owner < nobody for _, owner in found) else ()
