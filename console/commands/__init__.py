"""The sub-commands of `rvtrace`: a table says which there are, and only the one that is used is loaded.

Each is a module or a package of this folder with a function `add_arguments`. What they share is here: their parser, and
addresses on the command line.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import NamedTuple


class NoAddress(ValueError):
    """A text that is no address; says so, and what to write."""


class Unclear(NoAddress):
    """It may be one of two addresses."""


def address(text: str) -> int:
    """The address that *text* is. Raises NoAddress, of that Unclear.

    Digits alone may be meant as hexadecimal, as listings and symbol tables show addresses without 0x: they are asked
    about rather than read as something else.
    """
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if text.isdecimal() and text.isascii() and int(text) > 9:
        decimal = f", or {int(text):#x} if that is decimal" if int(text) >> 64 == 0 else ""
        raise Unclear(f"{text!r}: is that hexadecimal? Write 0x{text}{decimal}")
    if 0 <= value < 1 << 64:
        return value
    digits = all(digit in "0123456789abcdefABCDEF" for digit in text) and 0 < len(text) <= 16
    raise NoAddress(f"{text!r} is not an address{f'; write 0x{text}' if digits else ''}")


def address_argument(text: str) -> int:
    """The same, as an argparse type."""
    try:
        return address(text)
    except NoAddress as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class Command(NamedTuple):
    """A row of the table."""

    name: str
    help: str
    """One line, for the list of the commands."""
    module: str
    """In this package. It has a function `add_arguments`."""

    def add_arguments(self, parser: "CommandParser") -> None:
        """Load the module; it gives *parser* its arguments, and whatever else the parser says of the command."""
        import_module(f"{__name__}.{self.module}").add_arguments(parser)


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
