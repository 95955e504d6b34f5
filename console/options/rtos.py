"""The option with which a command is told the operating system whose tasks it is about."""

import argparse

from rvtrace_gdb.session.tasks.task_system import AUTO

HELP = (
    "the operating system: auto, off, freertos, zephyr, rt-thread, linux, or a FILE that describes it (default: auto)"
)


def add_rtos(parser: argparse._ActionsContainer) -> None:
    """Add `--rtos`."""
    parser.add_argument("--rtos", default=AUTO, metavar="NAME|FILE", help=HELP)
