"""A table of a command's options, from which they are parsed, explained and completed.

This module runs with and without gdb.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_HELP_COLUMN = 25
_WIDTH = 78
_DIGITS = 20  # of the largest number that is used anywhere, 2**64 - 1
_WORD = re.compile(r"[\w-]+")
_NUMBER = re.compile(r"[0-9]{1,4000}|0[xX][0-9a-fA-F]+")  # `int` refuses more digits


class Option(NamedTuple):
    """An option as the user types it, *name* with its hyphen. *help*: the lines of its explanation.

    The value is one of:

    - *words*: one of these words
    - *number*: a number, at least *least*; the text says what it counts. With *words*, the number is one of them.
    - *several*: a list with commas, of *words*, of numbers, or of names if there are neither; the text describes it.
    - *text*: any text, which the text describes; the option may be given more than once. *symbols*: it has names of
      the program.
    - none of these: the option stands alone, and means *value*.

    *shown*: the placeholder of the value in the help. *sent*: the option's name in the request, if it differs; two
    options with the same one exclude each other.
    """

    name: str
    help: tuple[str, ...]
    words: tuple[str, ...] = ()
    number: str = ""
    several: str = ""
    shown: str = ""
    text: str = ""
    symbols: bool = False
    least: int = 1
    value: Any = True
    sent: str = ""

    @property
    def takes_value(self) -> bool:
        return bool(self.words or self.number or self.text or self.several)

    @property
    def key(self) -> str:
        """The option's name in the request to the session."""
        return self.sent or self.name[1:].replace("-", "_")

    @property
    def usage(self) -> str:
        """The option with its value, as in the usage line."""
        value = self.shown or "|".join(self.words) or ("N" if self.number else "")
        return f"{self.name} {value}" if value else self.name


class BadOption(ValueError):
    """An error in the options of a command; the text is for the user."""


class Table:
    """The options of a command."""

    def __init__(self, command: str, options: Iterable[Option]) -> None:
        self._command = command
        self._by_name = {option.name: option for option in options}

    def parse(self, words: Iterable[str]) -> dict[str, Any]:
        """Return {key: value} for the words of a command line; options may have two hyphens. Raises BadOption."""
        found: dict[str, Any] = {}
        given: dict[str, Option] = {}
        rest = iter(words)
        for word in rest:
            option = self.option(word)
            if option is None:
                raise BadOption(f"unknown option {word}. See `help {self._command}`.")
            value = self._value(option, rest)
            other = given.setdefault(option.key, option)
            if other is not option:
                raise BadOption(f"{other.name} and {option.name} exclude each other.")
            found[option.key] = _added(option, found.get(option.key, ()), value)
        return found

    def option(self, word: str) -> Option | None:
        """Return the option with this name, None if there is none."""
        return self._by_name.get(word[1:] if word.startswith("--") else word)

    def _value(self, option: Option, rest: Iterator[str]) -> Any:
        if not option.takes_value:
            return option.value
        text = next(rest, "")
        if option.several:
            return self._several(option, text)
        if option.text and (not text or self.option(text)):
            raise BadOption(f"{option.name} takes {option.text}, got: {text or 'none'}.")
        if option.words and text not in option.words:
            raise BadOption(f"{option.name} takes one of {', '.join(option.words)}, got: {text or 'none'}.")
        if option.number and not _is_number(text, option.least):
            raise BadOption(f"{option.name} takes a number of {option.number}, got: {text or 'none'}.")
        return int(text, 0 if text[:2].lower() == "0x" else 10) if option.number else text

    def _several(self, option: Option, text: str) -> list[Any]:
        words = (text.lower() if option.words else text).split(",")
        for word in words:
            known = word in option.words if option.words else _fits(option, word)
            if not known or self.option(text):
                message = f"{option.name} takes {option.several}, separated by commas, got: {text or 'none'}."
                is_listed = set(option.words) <= set(_WORD.findall(option.several))
                raise BadOption(message if is_listed else f"{message} There are {', '.join(option.words)}.")
        return [int(word) if option.number else word for word in dict.fromkeys(words)]

    def complete(self, typed: str, offered: Mapping[str, Iterable[str]] | None = None) -> list[str]:
        """Return the completions of a command line's last word. *offered*: the values of options without *words*."""
        before, _, last = typed.rpartition(" ")
        option = self.option(before.split(" ")[-1])
        if option is None or not option.takes_value:
            hyphen = "-" if last.startswith("--") else ""
            return sorted(hyphen + name for name in self._by_name if (hyphen + name).startswith(last))
        words = option.words or tuple((offered or {}).get(option.name, ()))
        if not option.several:
            return [word for word in words if word.startswith(last)]
        chosen, comma, begun = last.rpartition(",")
        left = (word for word in words if word not in chosen.split(","))
        return [chosen + comma + word for word in left if word.startswith(begun)]

    def usage(self) -> str:
        """Return the usage of the command, with all options in brackets, in lines of at most 78 columns."""
        lines = [f"Usage: {self._command}"]
        indented = " " * (len(lines[0]) - 1)
        for option in self._by_name.values():
            piece = f" [{option.usage}]"
            if len(lines[-1] + piece) > _WIDTH:
                lines.append(indented)
            lines[-1] += piece
        return "\n".join(lines)

    def explained(self) -> str:
        """Return the lines that explain each option."""
        return "\n".join(_explained(option) for option in self._by_name.values())


def _added(option: Option, before: Iterable[Any], value: Any) -> Any:
    """Return the value of an option that may have been given before, with the value *before*."""
    if option.text:
        return [*before, value]
    return list(dict.fromkeys([*before, *value])) if option.several else value


def is_plain_number(word: str) -> bool:
    """Whether a word is a decimal number, of at most 20 digits."""
    return word.isascii() and word.isdigit() and len(word) <= _DIGITS


def _is_number(text: str, least: int) -> bool:
    return bool(_NUMBER.fullmatch(text)) and int(text, 0 if text[:2].lower() == "0x" else 10) >= least


def _fits(option: Option, word: str) -> bool:
    """Whether a word can be one of several values that the table does not list."""
    return is_plain_number(word) if option.number else bool(word)


def _explained(option: Option) -> str:
    value = option.shown or ("HOW" if option.words else "N" if option.number else "")
    shown = f"{option.name} {value}" if value else option.name
    column, lines = " " * _HELP_COLUMN, list(option.help)
    first = lines.pop(0) if len(shown) < _HELP_COLUMN - 2 else ""
    return "\n".join([f"  {shown:{_HELP_COLUMN - 2}}{first}".rstrip(), *(column + line for line in lines)])
