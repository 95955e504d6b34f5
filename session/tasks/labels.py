"""The label of the task that runs at a place, for answers that are about something else."""

from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.tasks.task_system import BadTaskSystem
from rvtrace_gdb.session.tasks.tasks import known_tasks
from rvtrace_gdb.support.errors import Progress, silent


def task_label(
    session: PastSource, selected: SelectedHistory, position: int, progress: Progress = silent
) -> str | None:
    """Return what tells the task that runs at a position from all others; None: none does, it is not known which, or
    the program has no operating system that is known. Raises what *progress* raises.
    """
    try:
        turns = known_tasks(session, selected, progress)
    except BadTaskSystem:  # said where tasks are asked for
        return None
    task = None if turns is None else turns.turn_at(position).task
    return None if turns is None or task is None else turns.labels[task]
