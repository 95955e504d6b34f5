"""The last options of each command that answers something from a trace: output, programs, raw bytes."""

import argparse
from collections.abc import Callable, Sequence
from typing import TypeAlias

from rvtrace_gdb.console import output
from rvtrace_gdb.console.help_pages import ParserWithPages
from rvtrace_gdb.console.options import inputs, raw

Runner: TypeAlias = Callable[[argparse.Namespace], int]
"""Runs a command with its arguments, and returns the exit status."""


def add_arguments(
    parser: ParserWithPages,
    of_json: str,
    examples: Sequence[tuple[str, str]],
    run: Runner,
    *,
    color: bool = True,
) -> None:
    """Add `--quiet`, `--json`, `--color`, the programs, and the options of raw bytes, and say what the command does.

    of_json   what an object of JSON stands for, as in "each message"
    examples  command lines and what they are for
    color     whether it prints a list
    """
    output.add_arguments(parser, of_json)
    if color:
        output.add_color(parser)
    inputs.add_program_arguments(parser)
    raw.add_arguments(parser)
    parser.examples = examples
    parser.set_defaults(run=run)
