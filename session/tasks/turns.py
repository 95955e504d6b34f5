"""Which task ran where on a hart: turns, which are parts of its history, one after the other, each of one task.

Who runs in a turn is told by what is known of memory at its begin (the system's own variable for the current task), by
the stack that sp is in, by the context that the trace has, and by functions that one task alone runs. Call stacks say
nothing: which one goes on behind a switch may be a guess where several tasks run the same code, so that turns on one
stack may be those of several tasks.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.session.queries.lists.search import BadQuery
from rvtrace_gdb.session.tasks.reader import ListedTask


class TaskSource(Enum):
    """From what it is known which task runs."""

    MEMORY = "memory"
    CONTEXT = "context"
    STACK = "stack pointer"
    CODE = "code"
    NONE = "no task"  # before the system runs its first task
    UNKNOWN = "not known"


class RtosTask(NamedTuple):
    """A task. Several may have one name.

    address  of its control block in memory, None: that is not known
    name     "" if it is not known
    id       the number that the system gives it: of FreeRTOS' trace facility, a process's or thread's; None: none
    idle     it runs when there is nothing to do
    room     where its stack is in memory, None: that is not known
    block    where its control block is in memory, None: that is not known
    """

    address: int | None
    name: str = ""
    id: int | None = None
    idle: bool = False
    room: range | None = None
    block: range | None = None

    @property
    def label(self) -> str:
        """The name, or what else is known of it."""
        if self.name:
            return self.name
        return f"context {self.id}" if self.address is None else f"0x{self.address:x}"


class TaskTurn(NamedTuple):
    """Positions *begin* to *end* - 1 of a history, in which a task runs: its index in the tasks, None: none does, or it
    is not known which (`source`).
    """

    begin: int
    end: int
    task: int | None
    source: TaskSource


class AtEnd(NamedTuple):
    """The *tasks* that are in the lists of the system where the trace ends. *complete*: these are all there are."""

    tasks: Sequence[ListedTask]
    complete: bool


class TaskTurns:
    """The turns of a hart, which are all of its history, and the tasks that had them.

    system    the operating system
    at_end    the tasks that there are in the end, whether they ran or not
    problems  lines: what is not known, and why
    """

    def __init__(
        self, system: str, tasks: Sequence[RtosTask], turns: Sequence[TaskTurn], at_end: AtEnd,
        problems: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.system, self.tasks, self.turns, self.at_end, self.problems = system, tasks, turns, at_end, problems
        self._begins = [turn.begin for turn in turns]

    def turn_at(self, position: int) -> TaskTurn:
        """Return the turn that a position is in."""
        return self.turns[max(bisect_right(self._begins, position) - 1, 0)]

    def task_at(self, position: int) -> RtosTask | None:
        """Return the task that runs at a position; None: none, or it is not known which."""
        task = self.turn_at(position).task
        return None if task is None else self.tasks[task]

    def turns_between(self, part: range) -> Iterator[TaskTurn]:
        """Yield the turns of a part of the history, cut where it begins and ends."""
        first = max(bisect_right(self._begins, part.start) - 1, 0)
        for number in range(first, len(self.turns)):
            turn = self.turns[number]
            if turn.begin >= part.stop:
                return
            yield turn._replace(begin=max(turn.begin, part.start), end=min(turn.end, part.stop))

    def ranges_of(self, tasks: Sequence[int]) -> list[range]:
        """Return the positions at which some tasks run, by their indices; in order, those that touch are one range."""
        wanted, found = set(tasks), list[range]()
        for turn in self.turns:
            if turn.task not in wanted:
                continue
            if found and found[-1].stop == turn.begin:
                found[-1] = range(found[-1].start, turn.end)
            else:
                found.append(range(turn.begin, turn.end))
        return found

    @cached_property
    def labels(self) -> list[str]:
        """What tells each task from all others, for people: its label, where several have one with the number that the
        system gave it, else its address.
        """
        times = Counter(task.label for task in self.tasks)
        return [task.label if times[task.label] == 1 else f"{task.label} {_told_apart(task)}" for task in self.tasks]

    def parts_by_label(self, part: range) -> dict[str, list[range]]:
        """Return the positions of a part of the history by the label of the task that runs; what ran without a task,
        or where it is not known which, has a label of its own in brackets. In the order of the tasks.
        """
        found: dict[str, list[range]] = {label: [] for label in (*self.labels, *_WITHOUT_TASK.values())}
        for turn in self.turns_between(part):
            label = _WITHOUT_TASK[turn.source is TaskSource.NONE] if turn.task is None else self.labels[turn.task]
            if turn.begin < turn.end:
                found[label].append(range(turn.begin, turn.end))
        return {label: parts for label, parts in found.items() if parts}

    def tasks_named(self, text: str) -> list[int]:
        """Return the indices of the tasks that a text means: a name, which may have `*` and `?`; a label that tells a
        task from others (`labels`), or name and number as `trace tasks` prints them; the number that the system gave a
        task; the address of its control block (0x...). Raises BadQuery: there is none, or it did not run.
        """
        wanted = text.strip()
        by_name = [index for index, task in enumerate(self.tasks) if task.name == wanted]
        by_label = [index for index, label in enumerate(self.labels) if label == wanted]
        by_number = [index for index, task in enumerate(self.tasks) if _is_numbered(wanted, task)]
        found = by_name or by_label or by_number
        found = found or [index for index, task in enumerate(self.tasks) if _means(wanted, task)]
        if not found:
            raise BadQuery(f"{self._not_found(wanted)}: {', '.join(self._numbered_labels()) or 'no task is known'}")
        return found

    @cached_property
    def selectors(self) -> list[str]:
        """What `tasks_named` takes and people can type: each name; each label, where several tasks have the name; of a
        task that has none, or one that cannot be typed, what else is known of it. In alphabetical order.
        """
        pairs = list(zip(self.tasks, self.labels, strict=True))
        typed = {label for task, own in pairs for label in (task.label, own) if _can_be_typed(label)}
        others = {_told_apart(task).lstrip("#") for task, own in pairs if not _can_be_typed(own)}
        return sorted(typed | others - {""})

    def _not_found(self, text: str) -> str:
        listed = (RtosTask(it.address, it.name or "", it.id) for it in self.at_end.tasks)
        idle = [task for task in listed if _means(text, task) or text == f"{task.label} {_told_apart(task)}"]
        return f"{idle[0].label} did not run; these did" if idle else f"{text or 'this'} is none of the tasks"

    def _numbered_labels(self) -> list[str]:
        """Return the labels, with the number that the system gave each task."""
        pairs = zip(self.tasks, self.labels, strict=True)
        return [
            label if task.id is None or label == task.label == f"context {task.id}" else f"{task.label} #{task.id}"
            for task, label in pairs
        ]


_WITHOUT_TASK = {True: "[no task]", False: "[task not known]"}


_NUMBERED = re.compile(r"(?P<name>.*\S)\s+(?:#(?P<number>[0-9]+)|\((?P<printed>[^()]+)\))")


def _is_numbered(text: str, task: RtosTask) -> bool:
    """Return whether a text is the name of a task with its number: "worker #4", or as `trace tasks` prints it,
    "worker  (4)", with its address, too, where that alone tells it from others.
    """
    found = _NUMBERED.fullmatch(text)
    if found is None or found["name"] != task.label:
        return False
    printed = (found["number"] or found["printed"]).split(", ")
    numbers = [_has_number(it, task) for it in printed if _is_number(it)]
    return bool(numbers) and all(numbers)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"0x[0-9a-f]{1,16}|0|[1-9][0-9]{0,18}", text) is not None


def _can_be_typed(name: str) -> bool:
    """Return whether a name can be written on a command line, in quotes of either kind."""
    return name.isprintable() and not {"'", '"'} <= set(name)


def _told_apart(task: RtosTask) -> str:
    return f"#{task.id}" if task.id is not None else "" if task.address is None else f"0x{task.address:x}"


def _means(text: str, task: RtosTask) -> bool:
    try:
        return _has_number(text, task)
    except ValueError:
        return fnmatchcase(task.label, text)


def _has_number(text: str, task: RtosTask) -> bool:
    """Return whether a number is that of a task, or, with 0x before it, its address. Raises ValueError: it is none."""
    return int(text, 0) == (task.address if text[:2].lower() == "0x" else task.id)
