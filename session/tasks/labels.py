"""The label of the task that runs at a place, for answers that are about something else."""

from collections.abc import Iterable

from rvtrace_gdb.rows.list_rows import FoundRow
from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.queries.lists.thread_parts import thread_at
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


def with_runners(
    session: PastSource, selected: SelectedHistory, rows: Iterable[FoundRow], progress: Progress = silent
) -> list[FoundRow]:
    """Return executions with the task, the process and the thread that ran then. Raises what *progress* raises."""
    capture, found = session.capture(), list[FoundRow]()
    for row in rows:
        position = row.position - 1
        process, thread = thread_at(capture, selected.history, position)
        task = task_label(session, selected, position, progress)
        found.append(row._replace(task=task, process=process, thread=thread))
    return found
