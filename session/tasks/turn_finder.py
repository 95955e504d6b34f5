"""Finds the turns of a hart: where they begin, and which task each of them belongs to."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.moment import PastMoment
from rvtrace_gdb.session.tasks.reader import TaskReader
from rvtrace_gdb.session.tasks.switches import ends_in, entries_by_jump, gap_borders
from rvtrace_gdb.session.tasks.task_system import functions_named
from rvtrace_gdb.session.tasks.turns import AtEnd, RtosTask, TaskSource, TaskTurn, TaskTurns
from rvtrace_gdb.support.errors import Progress

_STEP = 1 << 6
_NO_STACK = -1


class TaskKey(NamedTuple):
    """What tells a task from others: two with the same are one. *life*: how many tasks had been made, if its name is
    not known. *stack*: the call stack, if nothing else is known.
    """

    address: int | None
    name: str | None
    id: int | None
    life: int = 0
    stack: int | None = None


class _RunningTask(NamedTuple):
    """What is known of who runs in a part of the history between two switches. *task*: None: none does, or it is not
    known.
    """

    begin: int
    task: TaskKey | None
    source: TaskSource
    stack: int


class TurnFinder:
    """Finds the turns in the history of a hart. *calls*, *frames*: of the history. *reader*: reads the variables of the
    system; *has_values*: anything is known there.
    """

    def __init__(
        self, reader: TaskReader, image: Image, calls: CallHistory, frames: CallFrames, *, has_values: bool,
        progress: Progress,
    ) -> None:  # fmt: skip
        self._reader, self._system, self._image = reader, reader.system, image
        self._calls, self._frames, self._has_values, self._progress = calls, frames, has_values, progress
        self._history: History = calls.history
        self._creations: Sequence[int] = ()
        self._starts: Sequence[int] = ()
        self._has_creations = bool(functions_named(image, self._system.creations))
        self._names: dict[tuple[int, int], TaskKey] = {}

    def turns(self) -> TaskTurns:
        """Return the turns. Raises what *progress* raises."""
        self._creations = self._ends(self._system.creations)
        starts = functions_named(self._image, self._system.starts)
        self._starts = entries_by_jump(self._calls, self._image, starts, self._progress)
        begins = self._turn_begins()
        parts = [self._running_task(begin, end, number, len(begins)) for number, (begin, end) in
                 enumerate(pairwise([*begins, len(self._history)]))]  # fmt: skip
        parts = _by_stacks(self._without_task_before_start(parts), named=self._sees_all_stacks())
        return self._numbered(_without_single_stacks(_with_turns_merged(parts)))

    def _ends(self, functions: Sequence[str]) -> list[int]:
        """Return where functions with some names have ended."""
        return ends_in(self._calls, self._image, functions_named(self._image, functions), self._progress)

    def _turn_begins(self) -> list[int]:
        """Return where another task may begin to run."""
        ends = self._ends((*self._system.switches, *self._system.starts))
        borders = gap_borders(self._history.gap_positions, len(self._history))
        return sorted({0, *ends, *borders})

    # -- who runs

    def _running_task(self, begin: int, end: int, number: int, count: int) -> _RunningTask:
        if not number % _STEP:
            self._progress("finding tasks (switches)", number, count)
        stack = next((frame.stack for frame in self._frames.frames(end - 1)), _NO_STACK)
        if not self._has_values:
            return _RunningTask(begin, None, TaskSource.UNKNOWN, stack)
        moment = self._reader.moment(begin)
        if self._reader.is_inactive(moment):
            return _RunningTask(begin, None, TaskSource.NONE, stack)
        address = self._reader.current(moment)
        if not address:
            return _RunningTask(begin, None, TaskSource.UNKNOWN if address is None else TaskSource.NONE, stack)
        return _RunningTask(begin, self._key_of(address, moment), TaskSource.MEMORY, stack)

    def _key_of(self, address: int, moment: PastMoment) -> TaskKey:
        """Return what tells the task at an address, which is read again when tasks have been made since."""
        life = bisect_right(self._creations, moment.position)
        found = self._names.get((address, life)) if self._has_creations else None
        if found is None or found.name is None:
            found = self._new_key(address, moment, life)
            if found.name is None and self._lives_to_the_end(moment.position, life):
                found = self._new_key(address, self._reader.moment(len(self._history)), life)
            self._names[address, life] = found
        return found

    def _new_key(self, address: int, moment: PastMoment, life: int) -> TaskKey:
        name, number = self._reader.name_and_id(address, moment)
        return TaskKey(address, name, number, 0 if name is not None else life)

    def _lives_to_the_end(self, position: int, life: int) -> bool:
        """Return whether a task that runs at a position is the one that is at its address in the end: no task was made
        since.
        """
        gaps = self._history.gap_positions
        return self._has_creations and life == len(self._creations) and (not gaps or gaps[-1] < position)

    def _without_task_before_start(self, parts: Sequence[_RunningTask]) -> list[_RunningTask]:
        """Say of what ran before the first task was started that no task did, up to the gap before it."""
        found = list(parts)
        begins = [one.begin for one in parts]
        for start in self._starts:
            number = bisect_right(begins, start) - 1
            if self._history.pc(found[number].begin) != GAP:
                found[number] = found[number]._replace(task=None, source=TaskSource.NONE)
        return found

    def _sees_all_stacks(self) -> bool:
        """Return whether the call stack of each task is seen from its beginning: the first task was started in the
        history, and nothing is missing. Else one of a task that runs the same code may be taken for that of another.
        """
        return not self._history.gaps and bool(self._starts)

    # -- the result

    def _numbered(self, parts: Sequence[_RunningTask]) -> TaskTurns:
        tasks: dict[TaskKey, int] = {}
        turns: list[TaskTurn] = []
        for one, end in zip(parts, [*(it.begin for it in parts[1:]), len(self._history)], strict=True):
            task = None if one.task is None else tasks.setdefault(one.task, len(tasks))
            turns.append(TaskTurn(one.begin, end, task, one.source, one.stack))
        listed = [self._listed(key) for key in tasks]
        last = self._reader.moment(len(self._history))
        at_end = AtEnd(*self._reader.listed(last)) if self._has_values else AtEnd((), False)
        return TaskTurns(self._system.name, listed, turns, at_end, self._reader.missing_texts)

    def _listed(self, key: TaskKey) -> RtosTask:
        return RtosTask(key.address, key.name or "", key.id, self._reader.is_idle(key.name), key.stack)


def _by_stacks(parts: Sequence[_RunningTask], *, named: bool) -> list[_RunningTask]:
    """Give turns whose task is not known that of other turns on the same call stack, if they agree. *named*: these may
    be known; else call stacks are tasks of their own.
    """
    tasks: dict[int, set[TaskKey | None]] = defaultdict(set)
    for one in parts if named else ():
        if one.source in (TaskSource.MEMORY, TaskSource.NONE, TaskSource.CONTEXT):
            tasks[one.stack].add(one.task)
    return [_with_stack(one, tasks.get(one.stack)) for one in parts]


def _with_stack(one: _RunningTask, tasks: set[TaskKey | None] | None) -> _RunningTask:
    """Return what is known of who runs, if others on its stack are some *tasks*, None: that is not known of any."""
    if one.source is not TaskSource.UNKNOWN or one.stack == _NO_STACK or (tasks is not None and len(tasks) != 1):
        return one
    task = TaskKey(None, None, None, stack=one.stack) if tasks is None else next(iter(tasks))
    return one if task is None else one._replace(task=task, source=TaskSource.CALLS)


def _without_single_stacks(turns: Sequence[_RunningTask]) -> list[_RunningTask]:
    """Take no call stack for a task that had one turn alone: it may be that of another one, which was lost sight of."""
    times = Counter(one.task for one in turns if one.task is not None and one.task.stack is not None)
    return [
        one._replace(task=None, source=TaskSource.UNKNOWN) if one.task is not None and times[one.task] == 1 else one
        for one in turns
    ]


def _with_turns_merged(parts: Sequence[_RunningTask]) -> list[_RunningTask]:
    """Put together what follows each other and is of one task: the system looked for another task, and chose none."""
    found: list[_RunningTask] = []
    for one in parts:
        if found and _is_same(found[-1], one):
            before = found.pop()
            source = before.source if before.source is one.source else TaskSource.MEMORY
            found.append(one._replace(begin=before.begin, source=source))
        else:
            found.append(one)
    return found


def _is_same(one: _RunningTask, other: _RunningTask) -> bool:
    if one.task is not None or other.task is not None:
        return one.task == other.task
    return one.source is other.source and (one.source is TaskSource.NONE or one.stack == other.stack)
