"""The arguments of rvtrace's MI commands: `--begin 5 --count 100 LOCATION`, from one table for each command."""

from __future__ import annotations

from typing import Any, NamedTuple

import gdb

COUNT_MOST = 4096
"""Rows in one answer at most: the session gives no more at once, and an IDE waits for the whole answer."""
COUNT = 100
NUMBER_MOST = (1 << 63) - 1


class Option(NamedTuple):
    """An option. *kind*: "number" or "text" stand before a value, "texts" may be given several times, "flag" has none.

    *default*: its value when it is not given. *most*: of a number.
    """

    name: str
    kind: str
    default: Any = None
    most: int = NUMBER_MOST
    least: int = 0

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")


BEGIN = Option("begin", "number", least=1)
PAGE = (BEGIN, Option("count", "number", COUNT, COUNT_MOST))
"""Options of commands that answer with a part of a list."""


class Arguments(NamedTuple):
    """What was given: options by their keys, and the words that are none."""

    options: dict[str, Any]
    words: list[str]


def parse(command: str, options: tuple[Option, ...], words: str, argv: list[str]) -> Arguments:
    """The arguments of a command. *words*: the name of what stands behind the options, "" for nothing.

    Raises gdb.GdbError, one line.
    """
    by_name = {option.name: option for option in options}
    values: dict[str, Any] = {o.key: [] if o.kind == "texts" else o.default for o in options}
    rest = list(argv)
    while rest and rest[0].startswith("--"):
        word = rest.pop(0)
        if word == "--":
            break
        option = by_name.get(word[2:])
        if option is None:
            raise gdb.GdbError(f"{command}: there is no option {word}.{_usage(command, options, words)}")
        _take(command, option, rest, values)
    if bool(rest) != bool(words):
        what = f"{rest[0]} is one word too many" if rest else f"{words} is missing"
        raise gdb.GdbError(f"{command}: {what}.{_usage(command, options, words)}")
    return Arguments(values, rest)


def _take(command: str, option: Option, rest: list[str], values: dict[str, Any]) -> None:
    """Take an option's value off the rest of the words."""
    if option.kind == "flag":
        values[option.key] = True
        return
    if not rest:
        raise gdb.GdbError(f"{command}: --{option.name} needs a value.")
    text = rest.pop(0)
    if option.kind == "number":
        values[option.key] = _number(command, option, text)
    elif option.kind == "texts":
        values[option.key].append(text)
    else:
        values[option.key] = text


def _number(command: str, option: Option, text: str) -> int:
    digits = text.isascii() and text.isdigit() and len(text) < 20
    if not digits or not option.least <= int(text) <= option.most:
        range_of = f"from {option.least} to {option.most}" if option.most < NUMBER_MOST else f"from {option.least} on"
        raise gdb.GdbError(f"{command}: --{option.name} takes a number {range_of}, got: {text}.")
    return int(text)


def _usage(command: str, options: tuple[Option, ...], words: str) -> str:
    shown = (f"[--{o.name}{'' if o.kind == 'flag' else ' N' if o.kind == 'number' else ' TEXT'}]" for o in options)
    return " Usage: " + " ".join(filter(None, [command, *shown, words]))
