"""Who runs at a place, a task, a process or a thread, for answers that are about something else."""

from collections.abc import Iterable

from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.rows.list_rows import FoundRow
from rvtrace_gdb.rows.running_thread import RunningThread
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


def runner_at(
    session: PastSource, selected: SelectedHistory, position: int, progress: Progress = silent
) -> RunningThread:
    """Return the task, the process and the thread that run at a position. Raises what *progress* raises."""
    task = task_label(session, selected, position, progress)
    if session.opened is None:  # no trace that is recorded here names threads, and its target is not asked
        return RunningThread(task)
    return RunningThread(task, *thread_at(session.capture(), selected.history, position))


def with_runners(
    session: PastSource, selected: SelectedHistory, rows: Iterable[FoundRow], progress: Progress = silent
) -> list[FoundRow]:
    """Return executions with the task, the process and the thread that ran then. Raises what *progress* raises."""
    positions = ((row, history_position(row.position)) for row in rows)
    return [row._replace(**runner_at(session, selected, at, progress)._asdict()) for row, at in positions]
