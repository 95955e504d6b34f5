"""Which tasks ran on the harts of a trace, and where they switched: the answer of `trace tasks`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.events import TrapKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.rows.explain_rows import ExplainedPlace
from rvtrace_gdb.rows.task_rows import HartNumber, TaskRow, TasksAnswer, TaskSwitch
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.lists.history_part import positions_of_numbers
from rvtrace_gdb.session.queries.selected_harts import selected_harts
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import RtosTask, TaskSource, TaskTurn, TaskTurns
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable

CALL = "call"
_GONE, _RUNS = "gone", "running"
_ECALL = (0x73).to_bytes(4, "little")


class HartTurns(NamedTuple):
    """The turns of a hart in a part of its history."""

    selected: SelectedHistory
    turns: TaskTurns
    part: range


@dataclass
class _TaskSum:
    """What adds up for a task."""

    task: RtosTask
    harts: list[int] = field(default_factory=list)
    turns: int = 0
    instructions: int = 0
    time: int | None = 0
    first: HartNumber | None = None
    last: HartNumber | None = None
    sources: list[str] = field(default_factory=list)

    def add(self, turn: TaskTurn, selected: SelectedHistory) -> None:
        """Add a turn on a hart."""
        hart = selected.hart
        self.turns += 1
        self.instructions += turn.end - turn.begin
        self.time = _sum_if_known(self.time, _duration(selected, turn))
        self.first = self.first or HartNumber(hart, history_number(turn.begin))
        self.last = HartNumber(hart, history_number(turn.end - 1))
        if hart not in self.harts:
            self.harts.append(hart)
        if turn.source.value not in self.sources:
            self.sources.append(turn.source.value)


def tasks_answer(
    session: Session, context: Context, args: str = "", progress: Progress = silent, *, switches: bool = False
) -> TasksAnswer:
    """Return which tasks ran on each hart, or on the one that *context* asks for. *args*: a RANGE of its history, ""
    for all of it. *switches*: also where they switched. Raises RangeError, NoTasks, BadTaskSystem, and as
    `Session.selected`.
    """
    each = [
        HartTurns(it, tasks_of(session, it, progress), _part_of(it, args))
        for it in selected_harts(session, context, args, progress)
    ]
    rows = [row for it in each for row in _switches(session, it, progress)] if switches else []
    tasks = sorted(task_rows(each), key=lambda row: (-row.instructions, row.label))
    counts = [
        sum(_turn_instructions(it, turn) for turn in it.turns.turns_between(it.part) if turn.source is source)
        for source in (TaskSource.NONE, TaskSource.UNKNOWN)
        for it in each
    ]
    outside, unknown = sum(counts[: len(each)]), sum(counts[len(each) :])
    instructions = sum(_turn_instructions(it, turn) for it in each for turn in it.turns.turns_between(it.part))
    problems = list(dict.fromkeys(text for it in each for text in it.turns.problems))
    harts = [it.selected.hart for it in each]
    return TasksAnswer(each[0].turns.system, harts, instructions, outside, unknown, tasks, rows, problems)


def _part_of(selected: SelectedHistory, args: str) -> range:
    length = len(selected.history)
    return positions_of_numbers(args, length) if args else range(length)


def _turn_instructions(hart: HartTurns, turn: TaskTurn) -> int:
    """Return how many instructions a turn has: gaps, which have turns of their own, have none."""
    return 0 if hart.selected.history.pc(turn.begin) == GAP else turn.end - turn.begin


def _duration(selected: SelectedHistory, turn: TaskTurn) -> int | None:
    history = selected.history
    begin, end = (history.time_at(at) for at in (turn.begin, min(turn.end, len(history) - 1)))
    return None if begin is None or end is None or end < begin else end - begin


def _sum_if_known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


# -- tasks


def task_rows(each: Sequence[HartTurns]) -> Iterator[TaskRow]:
    """Yield the tasks that ran on some harts, and those that are there in the end."""
    sums = dict[RtosTask, _TaskSum]()
    for it in each:
        for turn in it.turns.turns_between(it.part):
            if turn.task is not None:
                task = it.turns.tasks[turn.task]
                sums.setdefault(task, _TaskSum(task)).add(turn, it.selected)
    states = _EndStates(each)
    for one in sums.values():
        yield _task_row(one, states.state_of(one.task))
    ran = {(task.address, task.name) for task in sums}
    for task, state in states.others(ran):
        yield _task_row(_TaskSum(task, time=None), state)


def _task_row(one: _TaskSum, state: str) -> TaskRow:
    task = one.task
    return TaskRow(
        name=printable(task.name), address=task.address, id=task.id, label=printable(task.label), idle=task.idle,
        harts=one.harts, turns=one.turns, instructions=one.instructions, time=one.time if one.turns else None,
        first=one.first, last=one.last, state=state, sources=one.sources,
    )  # fmt: skip


class _EndStates:
    """What tasks do where the trace ends: all harts stand there."""

    def __init__(self, each: Sequence[HartTurns]) -> None:
        self._running = {it.turns.task_at(len(it.selected.history) - 1) for it in each}
        ends = [it.turns.at_end for it in each]
        self._listed = {task.address: task for end in ends for task in end.tasks}
        self._are_all = any(end.complete for end in ends)
        self._idle = {task.name for it in each for task in it.turns.tasks if task.idle}

    def state_of(self, task: RtosTask) -> str:
        """Return the state of a task that ran."""
        if task in self._running:
            return _RUNS
        listed = None if task.address is None else self._listed.get(task.address)
        if listed is not None and (listed.name, listed.id) == (task.name, task.id):
            return listed.state
        has_other = listed is not None and listed.name is not None and bool(task.name)
        is_missing = listed is None and self._are_all
        return _GONE if task.address is not None and (has_other or is_missing) else ""

    def others(self, ran: set[tuple[int | None, str]]) -> Iterator[tuple[RtosTask, str]]:
        """Yield the tasks that did not run, and their states."""
        for it in self._listed.values():
            if (it.address, it.name or "") not in ran:
                yield RtosTask(it.address, it.name or "", it.id, (it.name or "") in self._idle), it.state


# -- switches


def _switches(session: Session, hart: HartTurns, progress: Progress) -> Iterator[TaskSwitch]:
    switches = _SwitchPlaces(session, hart.selected, progress)
    labels = list(map(printable, hart.turns.labels))
    for before, after in pairwise(hart.turns.turns):
        if after.begin in hart.part:
            yield switches.switch_at(after.begin, _turn_label(labels, before), _turn_label(labels, after))


def _turn_label(labels: Sequence[str], turn: TaskTurn) -> str | None:
    if turn.task is None:
        return "" if turn.source is TaskSource.NONE else None
    return labels[turn.task]


class _SwitchPlaces:
    """Where the tasks of a hart were when others took their turns, and why."""

    def __init__(self, session: Session, selected: SelectedHistory, progress: Progress) -> None:
        self._selected, self._history = selected, selected.history
        self._calls = call_history(session, selected, progress)
        self._frames = call_frames(session, selected, progress)
        self._lines = SourceLines(selected.program.base)

    def switch_at(self, position: int, before: str | None, after: str | None) -> TaskSwitch:
        """Return the switch whose new turn begins at a position."""
        why, place = self._reason(position)
        return TaskSwitch(
            self._selected.hart, history_number(position), before, after, why, place, self._history.time_at(position)
        )

    def _reason(self, position: int) -> tuple[str, ExplainedPlace | None]:
        """Return why a switch happened, and the place of the task that ran before."""
        if self._history.pc(position - 1) == GAP:
            return "gap", None
        frames = list(self._frames.frames(position - 1))
        for frame in frames[1:]:
            if frame.kind is StackOperationKind.TRAP:
                trap = "" if frame.call is None else self._calls.trap_at(frame.call + 1)
                return self._told_by_code(trap, frame.pc) or "trap", self._task_place(frame.pc)
        return CALL, self._task_place(frames[1].pc) if len(frames) > 1 else None

    def _told_by_code(self, trap: str, pc: int) -> str:
        """Return the text of a trap, of an exception without a cause that of the instruction which always has it."""
        is_call = trap == TrapKind.EXCEPTION.value and self._selected.program.base.constant(pc, 4) == _ECALL
        return "environment call" if is_call else trap

    def _task_place(self, pc: int) -> ExplainedPlace:
        image = self._selected.program.base
        symbol, row = image.symbol(pc), self._lines.row(pc)
        name, offset = ("", 0) if symbol is None else (printable(symbol[0]), symbol[1])
        line = "" if row is None else f"{printable(row.name.rpartition('/')[2])}:{row.line}"
        return ExplainedPlace(None, pc, name, offset, line, "")
