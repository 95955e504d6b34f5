"""Which tasks ran: the answer of `trace tasks`, as it crosses the pipe between gdb and the session."""

from __future__ import annotations

from typing import Any, NamedTuple

from rvtrace_gdb.rows.explain_rows import ExplainedPlace


class HartNumber(NamedTuple):
    """The instruction of a hart with a number of `trace history`."""

    hart: int
    number: int


class TaskRow(NamedTuple):
    """A task.

    name          "" if it is not known; several tasks may have one
    address       of its control block, None if it is not known
    id            the number that the system gives it, None: none
    label         its name, or what else is known of it
    idle          it runs when there is nothing to do
    harts         those on which it ran
    turns         how often it began to run
    instructions  that ran in its turns, with those of the interrupts that hit there
    time          of its turns, in the trace's ticks; None: not known
    first, last   where its first turn begins and its last one ends; None: it did not run
    state         where the program stands at the end of the trace: "running", or what the system's list says; "": not
                  known
    sources       from what its turns are known: "memory", "stack pointer", "context", "code"
    """

    name: str
    address: int | None
    id: int | None
    label: str
    idle: bool
    harts: list[int]
    turns: int
    instructions: int
    time: int | None
    first: HartNumber | None
    last: HartNumber | None
    state: str
    sources: list[str]


class TaskSwitch(NamedTuple):
    """A switch from one task to another on a hart. *number*: the first instruction of the new turn.

    before, after  the labels of the tasks, "" where none runs, None where it is not known which
    why            the trap in which it happened, "call" if the task itself called the switch
    place          where the task was that ran before, None if that is not known
    time           the trace's timestamp there, None if it has none
    """

    hart: int
    number: int
    before: str | None
    after: str | None
    why: str
    place: ExplainedPlace | None
    time: int | None


class TasksAnswer(NamedTuple):
    """The tasks of a trace.

    system        the operating system
    harts         those that are looked at
    instructions  that ran on them
    outside       of these, before the first task ran
    unknown       of these, in turns whose task is not known
    tasks         those that ran most come first
    switches      in the order of each hart; empty if they were not asked for
    problems      lines: what is not known, and why
    """

    system: str
    harts: list[int]
    instructions: int
    outside: int
    unknown: int
    tasks: list[TaskRow]
    switches: list[TaskSwitch]
    problems: list[str]


def tasks_answer_of(fields: list[Any]) -> TasksAnswer:
    """Return an answer that has crossed the pipe."""
    system, harts, instructions, outside, unknown, tasks, switches, problems = fields
    return TasksAnswer(
        system, harts, instructions, outside, unknown, [_task_row(it) for it in tasks],
        [_task_switch(it) for it in switches], problems,
    )  # fmt: skip


def _task_row(fields: list[Any]) -> TaskRow:
    row = TaskRow(*fields)
    first, last = (None if it is None else HartNumber(*it) for it in (row.first, row.last))
    return row._replace(first=first, last=last)


def _task_switch(fields: list[Any]) -> TaskSwitch:
    row = TaskSwitch(*fields)
    return row if row.place is None else row._replace(place=ExplainedPlace(*row.place))
