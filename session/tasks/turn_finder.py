"""Finds the turns of a hart: where they begin, and which task each of them belongs to."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.questions.moment import PastMoment
from rvtrace_gdb.session.tasks.expressions import NotInProgram, TaskExpressions
from rvtrace_gdb.session.tasks.switches import ends_in, entries_by_jump, gap_borders
from rvtrace_gdb.session.tasks.task_system import Expressions, TaskSystem, functions_named
from rvtrace_gdb.session.tasks.turns import RtosTask, TaskSource, TaskTurn, TaskTurns
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
    """Finds the turns in the history of a hart.

    *past*: None: no values are known. *calls*: of the history.
    """

    def __init__(
        self, system: TaskSystem, image: Image, calls: CallHistory, frames: CallFrames, past: Past | None, hart: int,
        progress: Progress,
    ) -> None:  # fmt: skip
        self._system, self._image, self._calls, self._frames = system, image, calls, frames
        self._past, self._hart, self._progress = past, hart, progress
        self._history: History = calls.history
        self._expressions = TaskExpressions(image, system.scope)
        self._creations: Sequence[int] = ()
        self._starts: Sequence[int] = ()
        self._has_creations = any(any(image.symbols_named(name)) for name in system.creations)
        self._read: dict[tuple[int, int], TaskKey] = {}
        self._missing: dict[str, str] = {}
        self.problems: list[str] = []

    def turns(self) -> TaskTurns:
        """Return the turns. Raises what *progress* raises."""
        if self._past is not None:
            self._past.prepare(self._progress)
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
        if self._past is None:
            return _RunningTask(begin, None, TaskSource.UNKNOWN, stack)
        moment = PastMoment(self._past, begin, self._expressions.pc)
        if self._is_inactive(moment):
            return _RunningTask(begin, None, TaskSource.NONE, stack)
        address = self._number_value(self._system.current, moment, {"hart": self._hart})
        if not address:
            return _RunningTask(begin, None, TaskSource.UNKNOWN if address is None else TaskSource.NONE, stack)
        return _RunningTask(begin, self._task(address, moment), TaskSource.MEMORY, stack)

    def _is_inactive(self, moment: PastMoment) -> bool:
        if not self._system.active:
            return False
        return self._number_value(self._system.active, moment, {"hart": self._hart}) == 0

    def _task(self, address: int, moment: PastMoment) -> TaskKey:
        """Return what tells the task at an address, which is read again when tasks have been made since."""
        life = bisect_right(self._creations, moment.position)
        found = self._read.get((address, life)) if self._has_creations else None
        if found is None or found.name is None:
            found = self._named_task(address, moment, life)
            if found.name is None and self._lives_to_the_end(moment.position, life):
                assert self._past is not None
                found = self._named_task(address, PastMoment(self._past, len(self._history), moment.pc), life)
            self._read[address, life] = found
        return found

    def _named_task(self, address: int, moment: PastMoment, life: int) -> TaskKey:
        names = {"task": address, "hart": self._hart}
        name = self._text_value(self._system.fields["name"], moment, names)
        number = self._number_value(self._system.fields.get("id", ()), moment, names)
        return TaskKey(address, name, number, 0 if name is not None else life)

    def _lives_to_the_end(self, position: int, life: int) -> bool:
        """Return whether a task that runs at a position is the one that is at its address in the end: no task was made
        since.
        """
        gaps = self._history.gap_positions
        return self._has_creations and life == len(self._creations) and (not gaps or gaps[-1] < position)

    def _number_value(self, expressions: Expressions, moment: PastMoment, names: dict[str, int]) -> int | None:
        if not expressions:
            return None
        try:
            return self._expressions.number(expressions, moment, names)
        except NotInProgram as error:
            self._note_missing(expressions, str(error))
            return None

    def _text_value(self, expressions: Expressions, moment: PastMoment, names: dict[str, int]) -> str | None:
        try:
            return self._expressions.text(expressions, moment, names)
        except NotInProgram as error:
            self._note_missing(expressions, str(error))
            return None

    def _note_missing(self, expressions: Expressions, problem: str) -> None:
        if expressions in (self._system.current, self._system.fields["name"]):
            what = "which task runs" if expressions == self._system.current else "the names of tasks"
            self._missing[what] = f"{what} cannot be read from this program: {problem}"

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
        return TaskTurns(self._system.name, listed, turns, [*self.problems, *self._missing.values()])

    def _listed(self, key: TaskKey) -> RtosTask:
        name = key.name or ""
        idle = bool(name and self._system.idle and fnmatchcase(name, self._system.idle))
        return RtosTask(key.address, name, key.id, idle, key.stack)


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
