"""`trace tasks`: which tasks of an operating system ran, and where they switched."""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.gdbext import completion, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands.explain import GdbExplainSymbols, range_and_options
from rvtrace_gdb.gdbext.enter_key import RepeatedAnswer
from rvtrace_gdb.gdbext.options import Option, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.task_rows import TasksAnswer, tasks_answer_of
from rvtrace_gdb.rows.task_text import SHOWN, more_task_lines, task_lines, tasks_fields

HART = Option("-hart", ("this hart alone; default: all harts",), number="hart", least=0)
"""The option of the command of the machine interface, too."""
_SWITCHES = Option("-switches", ("each switch instead of each task: where,", "from which task to which, and why"))
_TOP = Option("-top", (f"how many rows are shown, 0: all; default: {SHOWN}",), number="rows", least=0)
TASKS = Table("trace tasks [RANGE]", (_SWITCHES, HART, _TOP))


class TasksCommand(RepeatedAnswer, Command, name="trace tasks"):
    __doc__ = f"""List the tasks that ran: of FreeRTOS, Zephyr, RT-Thread or Linux.
{TASKS.usage()}

{TASKS.explained()}

Of each task: how many turns it had, the instructions that ran in them (with
those of the interrupts that hit there), their share, the time if the trace
has times, the first and the last instruction, and what the task does where
the trace ends. Which task runs is read from the system's own variables, as
far as their values in the past are known (`trace values`); what else it is
known from is in brackets. `set trace rtos` names the system.

RANGE: what ran from number to number of `trace history` alone, of one hart:
A, A,B or A,+N or A,-N. Enter shows more rows."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: TasksAnswer | None = None
        self._switches = False

    def _show_answer(self, argument: str) -> None:
        numbers, options = range_and_options(argument, TASKS, "trace tasks")
        self._switches = bool(options.get("switches"))
        found = answer(numbers, options.get("hart"), switches=self._switches)
        print_lines(found)
        shown: TasksAnswer = found["answer"]
        self._answer = shown
        results.add(tasks_fields(shown, switches=self._switches))
        top = options.get("top")
        self._shown = self._most = SHOWN if top is None else top
        for line in task_lines(shown, GdbExplainSymbols(), switches=self._switches, most=self._most):
            print_line(line)

    def _show_more(self) -> None:
        lines: list[str] = []
        if self._most and self._answer is not None:
            lines = list(more_task_lines(
                self._answer, GdbExplainSymbols(), self._shown, self._most, switches=self._switches
            ))  # fmt: skip
        self._shown += self._most
        for line in lines or ["No more rows."]:
            print_line(line)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words(text, word, TASKS.complete(text))


def answer(numbers: str, hart: int | None, *, switches: bool) -> dict[str, Any]:
    """Return the session's answer: its lines, and which tasks ran on all harts or on one. *numbers*: a RANGE. Raises
    gdb.GdbError.
    """
    asked = {"args": numbers, "switches": switches, **({"all": True} if hart is None else {"hart": hart})}
    found: dict[str, Any] = tracer().request("tasks", context=tracer().context(), **asked)
    found["answer"] = tasks_answer_of(found["answer"])
    return found


COMMANDS = (TasksCommand,)
