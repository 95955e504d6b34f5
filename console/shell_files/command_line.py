"""The command line as a table: every command with its options, read from the parsers that read command lines."""

import argparse
from collections.abc import Iterator
from textwrap import shorten
from typing import NamedTuple

from rvtrace_gdb.console.commands import CommandParser

_SHORT = 72  # characters of an explanation in a menu
_FILES = ("FILE", "PATH", "LOG", "SCRIPT")
_FOLDERS = ("DIR",)


class ShellOption(NamedTuple):
    """An option. *value*: what its value is called, "" if it has none; *choices*: the values there are, if few."""

    names: tuple[str, ...]
    meaning: str
    value: str = ""
    choices: tuple[str, ...] = ()
    repeated: bool = False

    @property
    def is_file(self) -> bool:
        return any(word in self.value for word in _FILES)

    @property
    def is_folder(self) -> bool:
        return any(word in self.value for word in _FOLDERS)

    @property
    def short(self) -> str:
        """The meaning, as long as a menu has room for."""
        return shorten(self.meaning, _SHORT, placeholder=" ...")


class Described(NamedTuple):
    """A command. *words*: after `rvtrace`; *arguments*: the values of an argument that has few, such as `bash`."""

    words: tuple[str, ...]
    meaning: str
    parser: CommandParser
    options: tuple[ShellOption, ...]
    arguments: tuple[str, ...]


def commands_of(parser: argparse.ArgumentParser, before: tuple[str, ...] = ()) -> Iterator[Described]:
    """Yield the commands of a parser in its order, each followed by those below it."""
    if parser._subparsers is None:
        return
    for action in parser._subparsers._group_actions:
        assert isinstance(action, argparse._SubParsersAction)
        meanings = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, inner in action.choices.items():
            assert isinstance(inner, CommandParser)
            inner.load()
            words = (*before, name)
            options = dict.fromkeys(one for variant in inner.variants for one in options_of(inner.variant(variant)))
            yield Described(words, meanings[name], inner, tuple(options), arguments_of(inner))
            yield from commands_of(inner, words)


def options_of(parser: argparse.ArgumentParser) -> tuple[ShellOption, ...]:
    """Return the options of a parser that are not hidden."""
    actions = (it for it in parser._actions if it.option_strings and it.help != argparse.SUPPRESS)
    return tuple(map(option, actions))


def option(action: argparse.Action) -> ShellOption:
    """Return an option as argparse has it."""
    choices = tuple(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else _value_placeholder(action)
    return ShellOption(tuple(action.option_strings), expanded(action), value, choices, _is_repeated(action))


def arguments_of(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """Return the values of arguments that are not options, where there is a choice of few."""
    actions = (it for it in parser._actions if not it.option_strings and not isinstance(it, argparse._SubParsersAction))
    return tuple(str(choice) for action in actions for choice in action.choices or ())


def expanded(action: argparse.Action) -> str:
    """Return the help of an option, with what argparse fills in."""
    values = {**vars(action), "prog": "rvtrace"}
    return " ".join((action.help or "") % values if "%(" in (action.help or "") else (action.help or "").split())


def _value_placeholder(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _is_repeated(action: argparse.Action) -> bool:
    return isinstance(action, argparse._AppendAction)
