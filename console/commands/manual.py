"""`rvtrace man`: the manual page."""

import argparse
import sys

from rvtrace_gdb.console.commands import CommandParser

EXAMPLES = (("man > rvtrace.1", "then `man ./rvtrace.1`"),)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace man`."""
    parser.description = (
        "Prints the manual page rvtrace(1), with all commands and options, in the format of man. An installed rvtrace"
        " has it in share/man/man1."
    )
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from rvtrace_gdb.console.main import parser
    from rvtrace_gdb.console.shell_files.manual import page

    sys.stdout.write(page(parser()))
    return 0
