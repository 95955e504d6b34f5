"""`rvtrace tasks`: which tasks of an operating system ran, as `trace tasks` says it in gdb."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, part, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.rtos import add_rtos
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import ShellText, say_about_trace
from rvtrace_gdb.rows.task_rows import TasksAnswer
from rvtrace_gdb.rows.task_text import SHOWN, task_lines, tasks_fields
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.answer import tasks_answer
from rvtrace_gdb.support.text import json_line

EXAMPLES = (
    ("tasks app.rvt", "which tasks ran, how often and for how long"),
    ("tasks app.rvt --switches --top 0", "each switch: where, from which task to which, and why"),
    ("tasks app.rvt --rtos my-system.toml", "the tasks of a system that a file describes"),
)


@dataclass(frozen=True)
class TasksRequest:
    """What the command line asks for. *hart*: None: all; *numbers*: a RANGE, "" for everything; *top*: how many rows
    are shown, 0: all.
    """

    trace: RequestedTrace
    hart: int | None
    numbers: str
    switches: bool
    top: int
    rtos: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace tasks`."""
    parser.usage = "%(prog)s FILE [RANGE] [--switches] [--hart N] [options]"
    parser.description = (
        "Lists the tasks of FreeRTOS, Zephyr, RT-Thread or Linux that ran: how many turns each had, the instructions in"
        " them, their share and time, and what each task does where the trace ends; or each switch between them. As"
        " `trace tasks` does in gdb."
    )
    part.add_arguments(parser, f"look at these instructions alone: {part.RANGE_FORMS}")
    parser.add_argument("--switches", action="store_true", help="each switch instead of each task")
    parser.add_argument(
        "--top", type=inputs.number_from(0, 1 << 31), default=SHOWN, metavar="N",
        help=f"how many rows are shown, 0: all (default: {SHOWN})",
    )  # fmt: skip
    add_rtos(parser)
    trace_answer.add_arguments(parser, "the trace", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print which tasks ran. Raises NoRange, RangeError, NoTasks, BadTaskSystem, and as `raw.trace_request` and
    `Session.harts`.
    """
    request = TasksRequest(
        raw.trace_request(args, args.capture), args.hart, part.checked_range(args.part), args.switches, args.top,
        args.rtos,
    )  # fmt: skip
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session, context = Session(), Context(hart=request.hart, rtos=request.rtos)
        say_about_trace(request.trace, session, shown)
        found = tasks_answer(session, context, request.numbers, shown.progress, switches=request.switches)
        shown.rows(_printed_rows(found, shown, request))
    return 0


def _printed_rows(answer: TasksAnswer, shown: CommandOutput, request: TasksRequest) -> Iterator[str]:
    if shown.json:
        yield json_line(tasks_fields(answer, switches=request.switches))
    else:
        yield from task_lines(answer, ShellText(shown), switches=request.switches, most=request.top)
