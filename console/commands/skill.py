"""`rvtrace skill`: the page that teaches a program with a shell to answer questions from a capture."""

import argparse
import sys
from pathlib import Path

from rvtrace_gdb.console.commands import CommandParser

PAGE = Path(__file__).with_name("SKILL.md")
EXAMPLES = (("skill > skills/rvtrace/SKILL.md", "into a folder where a program finds what it can do"),)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace skill`."""
    parser.description = (
        "Prints a page for programs that use a shell, such as coding agents: which command of rvtrace answers which"
        " question about a capture, and what unknown values and gaps mean."
    )
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    sys.stdout.write(PAGE.read_text(encoding="utf-8"))
    return 0
