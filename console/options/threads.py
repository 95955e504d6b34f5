"""The options with which a command is about what a task, a process or a thread ran, alone."""

import argparse
from collections.abc import Mapping

from rvtrace_gdb.console.options.rtos import add_rtos
from rvtrace_gdb.session.rpc.protocol import PARTS

_HELP = {
    "task": "the turns of this task: its name (* and ? count), number or address; see `tasks`",
    "process": "what this process of Linux ran: its number, or name",
    "thread": "what this thread of Linux ran: its number, or name",
}


TITLE = "what a task, a process or a thread ran"
"""Of the group of these options, where they are on a page of the help."""


def add_threads(parser: argparse._ActionsContainer) -> None:
    """Add `--task`, `--process` and `--thread`, and `--rtos`, which says what tasks are of."""
    for part in PARTS:
        parser.add_argument(f"--{part}", default="", metavar=part.upper(), help=f"only {_HELP[part]}")
    add_rtos(parser)


def threads_asked_for(args: argparse.Namespace) -> Mapping[str, str]:
    """Return what is shown alone, by `PARTS`."""
    return {name: getattr(args, name) for name in PARTS if getattr(args, name)}
