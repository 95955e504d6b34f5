"""The tasks of a session's trace: `tasks_of` is what everybody asks."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import CapturedThread
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.choice import PastSource, past_of
from rvtrace_gdb.session.selected_history import SelectedHistory, plain_call_frames, plain_call_history
from rvtrace_gdb.session.tasks.reader import TaskReader
from rvtrace_gdb.session.tasks.stopped_hart import stopped_hart
from rvtrace_gdb.session.tasks.task_system import AUTO, OFF, missing_symbols, shipped_systems, system_of
from rvtrace_gdb.session.tasks.turn_finder import TurnFinder
from rvtrace_gdb.session.tasks.turns import TaskTurns
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable

_NAMED = 10  # threads in a message


class NoTasks(NoTrace):
    """The program has no operating system that is known here, or not the one that the user named (*rtos*). *threads*:
    those of Linux that the capture knows all the same.
    """

    def __init__(self, image: Image, rtos: str, threads: Sequence[CapturedThread] = ()) -> None:
        if rtos == OFF:
            super().__init__("tasks are switched off: `set trace rtos off`, or --rtos off; with auto they are found")
            return
        if rtos != AUTO:
            lacks = [f"{system.name}: it has no symbol {symbol}" for system, symbol in missing_symbols(image, rtos)]
            super().__init__(f"this program is not {'; '.join(lacks)}. With auto its system is found, if it is known")
            return
        names = ", ".join(system.name for system in shipped_systems())
        super().__init__(
            f"no operating system is recognised in this program, by its symbols; known are {names}."
            " A file describes another one: docs/tasks.md" + _threads_text(threads)
        )


def _threads_text(threads: Sequence[CapturedThread]) -> str:
    """Return what is known instead: threads of Linux, by which lists of functions, calls and events can be asked."""
    if not threads:
        return ""
    names = [f"{it.process}/{it.id}" + (f" ({it.name})" if it.name else "") for it in threads]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    known = printable(f"{', '.join(names[:_NAMED])}{more}")
    return f". The capture has processes of Linux, PROCESS/THREAD: {known}: `functions` with --process or --thread"


class _FoundTurns(NamedTuple):
    """The turns of a history, by what the user set of systems and of what is reconstructed."""

    by_settings: dict[tuple[str, str], TaskTurns]


def tasks_of(session: PastSource, selected: SelectedHistory, progress: Progress = silent) -> TaskTurns:
    """Return which task ran where on a hart, which is found once for a history.

    Raises NoTasks, BadTaskSystem, and what *progress* raises.
    """
    kept = session.cached(_FoundTurns, selected.history, lambda: _FoundTurns({})).by_settings
    key = selected.rtos, selected.values
    if key not in kept:
        image = selected.program.base
        system = system_of(image, selected.rtos)
        if system is None:
            raise NoTasks(image, selected.rtos, session.capture().threads)
        calls = plain_call_history(session, selected, progress)
        frames = plain_call_frames(session, selected, progress)
        past = past_of(session, selected, progress)
        alone, end = is_alone(session), len(selected.history)
        stopped = None if alone else stopped_hart(session, selected)
        reader = TaskReader(system, image, past, selected.hart, end=end, stopped=stopped)
        if past is not None and not reader.is_translated:
            past.prepare(progress)
        finder = TurnFinder(
            reader, image, calls, frames, has_values=past is not None, is_alone=alone, progress=progress
        )
        kept[key] = finder.turns()
    return kept[key]


def is_alone(session: PastSource) -> bool:
    """Return whether the trace is that of a single hart."""
    capture = session.capture()
    return len({*(it.hart for it in capture.encoders), *(it.hart for it in capture.records)}) < 2


def known_tasks(session: PastSource, selected: SelectedHistory, progress: Progress = silent) -> TaskTurns | None:
    """Return the same, None if the program has no operating system that is known."""
    has_system = system_of(selected.program.base, selected.rtos) is not None
    return tasks_of(session, selected, progress) if has_system else None
