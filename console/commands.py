"""The commands of a command line: a table says which there are, and only the one that is used is loaded."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """A row of the table."""

    name: str
    help: str
    """One line, for the list of the commands."""
    module: str
    """In this room. It has a function `add_arguments`."""

    def add_arguments(self, parser: "CommandParser") -> None:
        """Load the module; it gives *parser* its arguments, and whatever else the parser says of the command."""
        import_module(f"rvtrace_gdb.console.{self.module}").add_arguments(parser)


class CommandParser(argparse.ArgumentParser):
    """Of a command: takes `FILE --option RANGE` as well as `FILE RANGE --option`."""

    to_load: Command | None = None
    """Whose arguments are not added before a command line has this command."""
    intermixed = True
    """A command that has commands of its own cannot be that."""
    prepare: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None
    """Adds options that depend on the command line, which it is given."""
    _inside = False

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As argparse's, which itself takes all positional arguments that may be left out at the first chance.

        What nobody knows is an error of this command; argparse would make it one of `rvtrace`.
        """
        command, self.to_load = self.to_load, None
        if command is not None:
            command.add_arguments(self)
        if self._inside or not self.intermixed:
            return super().parse_known_args(args, namespace)
        self._inside = True
        if self.prepare is not None:
            self.prepare(self, args)
        try:
            known, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._inside = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def add_commands(parser: argparse.ArgumentParser, table: Iterable[Command]) -> None:
    """Give *parser* the commands of *table*, in its order."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=CommandParser)
    for row in table:
        commands.add_parser(row.name, help=row.help).to_load = row
