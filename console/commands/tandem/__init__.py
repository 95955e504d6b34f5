"""`rvtrace tandem`: show, convert and verify tandem-verification traces (docs/tandem.md)."""

from rvtrace_gdb.console.commands import CommandParser, Subcommand, add_commands

COMMANDS = (
    Subcommand("show", "list the groups of a tandem trace: what ran, and what it changed", "tandem.show"),
    Subcommand("convert", "write a tandem trace as a log of Spike, riscv-dv's CSV or RVVI-TEXT", "tandem.convert"),
    Subcommand(
        "verify", "run a golden model in step with a tandem trace, and report where they diverge", "tandem.verify"
    ),
)
"""The sub-commands, in the order of the help."""


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace tandem`, with its sub-commands."""
    parser.description = (
        "A tandem trace records every state change of every instruction. `show` lists them, `convert` writes them in"
        " other forms, `verify` compares them with a golden model. Each has its own --help."
    )
    parser.intermixed = False
    add_commands(parser, COMMANDS)
