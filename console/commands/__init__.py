"""The sub-commands of `rvtrace`, of which only the one that is used is imported.

Each is a module or a package of this folder with a function `add_arguments`; commands that show lists are one module
together. This module has what they share: their parser, and addresses on the command line.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import NamedTuple

from rvtrace_gdb.console.help_pages import ParserWithPages


class NoAddress(ValueError):
    """A text that is not an address; the message says what to write."""


class Unclear(NoAddress):
    """A text that may be decimal or hexadecimal."""


def address(text: str) -> int:
    """Parse an address. Raises NoAddress, and its subclass Unclear for several digits without 0x.

    Such digits may be meant as hexadecimal, because listings and symbol tables show addresses without 0x.
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
    """Parse an address, as an argparse type."""
    try:
        return address(text)
    except NoAddress as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class Subcommand(NamedTuple):
    """A sub-command."""

    name: str
    help: str
    """One line, for the list of the commands."""
    module: str
    """The module's name in this package."""
    entry: str = "add_arguments"
    """The function of the module that defines the command line."""

    def add_arguments(self, parser: "CommandParser") -> None:
        """Import the module, which adds its arguments, usage and description to *parser*."""
        getattr(import_module(f"{__name__}.{self.module}"), self.entry)(parser)


class CommandParser(ParserWithPages):
    """The parser of a command, which accepts `FILE --option RANGE` as well as `FILE RANGE --option`."""

    to_load: Subcommand | None = None
    """The command whose arguments are added when a command line uses it."""
    command: Subcommand | None = None
    intermixed = True
    """Whether options and positional arguments may be mixed; not possible for a command with sub-commands."""
    prepare: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None
    """Called with the command line before it is parsed, to add options or change the words."""
    _inside = False

    def variant(self, words: Sequence[str]) -> "CommandParser":
        """Return a parser with the options that there are after *words*, one of `variants`."""
        made = CommandParser(prog=self.prog)
        made.to_load = self.command
        made.load()
        if made.prepare is not None:
            made.prepare(made, words)
        return made

    def load(self) -> None:
        """Add the arguments of the command."""
        command, self.to_load = self.to_load, None
        if command is not None:
            command.add_arguments(self)

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse a command line. Unlike argparse, do not take all optional positional arguments at the first chance.

        Unknown arguments are errors of this command; argparse would report them for `rvtrace`.
        """
        self.load()
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


def add_commands(parser: argparse.ArgumentParser, table: Iterable[Subcommand]) -> None:
    """Add the commands of *table* to *parser*, in this order."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=CommandParser)
    for row in table:
        made = commands.add_parser(row.name, help=row.help)
        made.to_load = made.command = row
