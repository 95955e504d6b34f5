"""A table of a command's options, from which they are parsed, explained and completed.

It serves `trace` commands and the commands of the machine interface, which spell them differently. This module runs
with and without gdb.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_HELP_COLUMN = 25
_WIDTH = 78
_DIGITS = 20  # of the largest number that is used anywhere, 2**64 - 1
_WORD = re.compile(r"[\w-]+")
_NUMBER = re.compile(r"[0-9]{1,4000}|0[xX][0-9a-fA-F]+")  # `int` refuses more digits


_UNLIMITED = (1 << 31) - 1
"""The smallest *most* of an option that its error does not name."""


class Option(NamedTuple):
    """An option as the user types it, *name* with its hyphen. *help*: the lines of its explanation.

    The value is one of:

    - *words*: one of these words
    - *number*: a number, at least *least*; the text says what it counts. With *words*, the number is one of them.
    - *most*: a decimal number from *least* to this; errors name the range
    - *several*: a list with commas, of *words*, of numbers, or of names if there are neither; the text describes it.
    - *text*: any text, which the text describes; the option may be given more than once. *symbols*: it has names of
      the program.
    - none of these: the option stands alone, and means *value*.

    *shown*: the placeholder of the value in the help. *sent*: the option's name in the request, if it differs; two
    options with the same one exclude each other. *default*: the value where the option is not given.
    """

    name: str
    help: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    number: str = ""
    several: str = ""
    shown: str = ""
    text: str = ""
    symbols: bool = False
    least: int = 1
    value: Any = True
    sent: str = ""
    most: int = 0
    default: Any = None

    @property
    def takes_value(self) -> bool:
        return bool(self.words or self.number or self.text or self.several or self.most)

    @property
    def key(self) -> str:
        """The option's name in the request to the session."""
        return self.sent or self.name[1:].replace("-", "_")

    @property
    def usage(self) -> str:
        """The option with its value, as in the usage line."""
        value = self.shown or "|".join(self.words) or ("N" if self.number or self.most else "")
        return f"{self.name} {value}" if value else self.name

    @property
    def expected(self) -> str:
        """What the option takes, in an error; not of one with *several* values."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        if self.most:
            return f"a number from {self.least} {'on' if self.most >= _UNLIMITED else f'to {self.most}'}"
        return f"a number of {self.number}" if self.number else self.text


class OptionError(ValueError):
    """An error in the options of a command; the text is for the user."""


class OptionSpelling(NamedTuple):
    """How options are written, with one hyphen or two, and the errors that depend on who writes them.

    *unknown*: of an option that the command does not have. *missing*: of one without its value; "": the error says what
    it takes.
    """

    hyphens: str
    unknown: str
    missing: str


PERSON = OptionSpelling("-", "unknown option {word}. See `help {command}`.", "")
"""The options of `trace` commands; whoever types two hyphens is understood, too."""
MACHINE = OptionSpelling("--", "there is no option {word}. {usage}", "{option} needs a value.")
"""The options of the machine interface, which end at the first other word or at `--`."""


class Table:
    """The options of a command. *words*: the name of the argument that follows them, "" if there is none."""

    def __init__(
        self, command: str, options: Iterable[Option], spelling: OptionSpelling = PERSON, words: str = ""
    ) -> None:
        self._command, self._spelling, self._words = command, spelling, words
        self._by_name = {option.name: option for option in options}

    def parse(self, words: Iterable[str]) -> dict[str, Any]:
        """Return {key: value} for the words of a command line; options may have two hyphens. Raises OptionError."""
        found, rest = self._parse_options(words)
        if rest:
            raise OptionError(self._unknown_option(rest[0]))
        return found

    def parse_line(self, words: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """Return {key: value} of all options, with their defaults, and the words of the argument after them.

        Raises OptionError.
        """
        found, rest = self._parse_options(words)
        if bool(rest) != bool(self._words):
            what = f"{rest[0]} is one word too many" if rest else f"{self._words} is missing"
            raise OptionError(f"{what}. {self._usage_line()}")
        return {**{option.key: option.default for option in self._by_name.values()}, **found}, rest

    def _parse_options(self, words: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """Return {key: value} of the options that are given, and the words after them. Raises OptionError."""
        found: dict[str, Any] = {}
        given: dict[str, Option] = {}
        rest = list(words)
        while rest and rest[0].startswith(self._spelling.hyphens):
            word = rest.pop(0)
            if word == "--" == self._spelling.hyphens:
                break
            option = self.option(word)
            if option is None:
                raise OptionError(self._unknown_option(word))
            value = self._option_value(option, rest)
            other = given.setdefault(option.key, option)
            if other is not option:
                raise OptionError(f"{self._spelled_name(other)} and {self._spelled_name(option)} exclude each other.")
            found[option.key] = _added(option, found.get(option.key, ()), value)
        return found, rest

    def option(self, word: str) -> Option | None:
        """Return the option with this name, None if there is none."""
        return self._by_name.get(word[1:] if word.startswith("--") else word)

    def _spelled_name(self, option: Option) -> str:
        return self._spelling.hyphens + option.name[1:]

    def _unknown_option(self, word: str) -> str:
        return self._spelling.unknown.format(word=word, command=self._command, usage=self._usage_line())

    def _option_value(self, option: Option, rest: list[str]) -> Any:
        """Remove the option's value from the *rest* of the words, and return it. Raises OptionError."""
        if not option.takes_value:
            return option.value
        if not rest and self._spelling.missing:
            raise OptionError(self._spelling.missing.format(option=self._spelled_name(option)))
        text = rest.pop(0) if rest else ""
        if option.several:
            return self._several(option, text)
        if not _fits(option, text) or (option.text and self.option(text)):
            raise OptionError(f"{self._spelled_name(option)} takes {option.expected}, got: {text or 'none'}.")
        return int(text, 0 if text[:2].lower() == "0x" else 10) if option.number or option.most else text

    def _several(self, option: Option, text: str) -> list[Any]:
        words = (text.lower() if option.words else text).split(",")
        for word in words:
            known = word in option.words if option.words else is_plain_number(word) if option.number else bool(word)
            if not known or self.option(text):
                message = (
                    f"{self._spelled_name(option)} takes {option.several}, separated by commas, got: {text or 'none'}."
                )
                is_listed = set(option.words) <= set(_WORD.findall(option.several))
                raise OptionError(message if is_listed else f"{message} There are {', '.join(option.words)}.")
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
        for piece in self._bracketed():
            if len(lines[-1] + piece) > _WIDTH:
                lines.append(indented)
            lines[-1] += piece
        return "\n".join(lines)

    def _usage_line(self) -> str:
        return "".join([f"Usage: {self._command}", *self._bracketed(), f" {self._words}" if self._words else ""])

    def _bracketed(self) -> list[str]:
        return [f" [{self._spelling.hyphens}{option.usage[1:]}]" for option in self._by_name.values()]

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


def _fits(option: Option, text: str) -> bool:
    """Whether a text can be the value of an option that takes one."""
    if option.most:
        return is_plain_number(text) and option.least <= int(text) <= option.most
    if option.words and text not in option.words:
        return False
    return _is_number(text, option.least) if option.number else bool(text)


def _is_number(text: str, least: int) -> bool:
    return bool(_NUMBER.fullmatch(text)) and int(text, 0 if text[:2].lower() == "0x" else 10) >= least


def _explained(option: Option) -> str:
    value = option.shown or ("HOW" if option.words else "N" if option.number else "")
    shown = f"{option.name} {value}" if value else option.name
    column, lines = " " * _HELP_COLUMN, list(option.help)
    first = lines.pop(0) if len(shown) < _HELP_COLUMN - 2 else ""
    return "\n".join([f"  {shown:{_HELP_COLUMN - 2}}{first}".rstrip(), *(column + line for line in lines)])
