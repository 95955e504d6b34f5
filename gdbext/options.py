"""Options of a command in a table, from which they are parsed, explained and completed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_HELP_COLUMN = 25
_WIDTH = 78


class Option(NamedTuple):
    """An option as the user types it, *name* with its hyphen. *help*: lines.

    *words*: what may stand after it; *several*: what they are called if it may be more than one, with commas in
    between. *number*: what a number after it counts. *text*: what any text after it is, and the option may be given
    more than once. None of these: it stands alone. *shown*: what stands for the words in the help.
    """

    name: str
    help: tuple[str, ...]
    words: tuple[str, ...] = ()
    number: str = ""
    several: str = ""
    shown: str = ""
    text: str = ""

    @property
    def takes_value(self) -> bool:
        return bool(self.words or self.number or self.text)

    @property
    def key(self) -> str:
        """Its name in the request to the session."""
        return self.name[1:].replace("-", "_")


class BadOption(ValueError):
    """What is wrong with the options, for the user."""


class Table:
    """The options of *command*."""

    def __init__(self, command: str, options: Iterable[Option]) -> None:
        self._command = command
        self._by_name = {option.name: option for option in options}

    def parse(self, words: Iterable[str]) -> dict[str, Any]:
        """{key: value} from the words of a command line; two hyphens are as good as one. Raises BadOption."""
        found: dict[str, Any] = {}
        rest = iter(words)
        for word in rest:
            option = self._option(word)
            if option is None:
                raise BadOption(f"unknown option {word}. See `help {self._command}`.")
            value = self._value(option, rest)
            found[option.key] = [*found.get(option.key, ()), value] if option.text else value
        return found

    def _option(self, word: str) -> Option | None:
        return self._by_name.get(word[1:] if word.startswith("--") else word)

    def _value(self, option: Option, rest: Iterator[str]) -> Any:
        if not option.takes_value:
            return True
        text = next(rest, "")
        if option.text and (not text or self._option(text)):
            raise BadOption(f"{option.name} takes {option.text}, got: {text or 'none'}.")
        if option.several:
            return self._several(option, text)
        got = f"got: {text or 'none'}."
        if option.words and text not in option.words:
            raise BadOption(f"{option.name} takes one of {', '.join(option.words)}, {got}")
        if option.number:
            if not (text.isascii() and text.isdigit() and int(text) > 0):
                raise BadOption(f"{option.name} takes a number of {option.number}, {got}")
            return int(text)
        return text

    def _several(self, option: Option, text: str) -> list[str]:
        words = text.lower().split(",")
        for word in words:
            if word not in option.words:
                said = f"{option.name} takes {option.several}, separated by commas, got: {text or 'none'}."
                raise BadOption(f"{said} See `help {self._command}`.")
        return list(dict.fromkeys(words))

    def complete(self, typed: str) -> list[str]:
        """What the last word of a command line can become."""
        before, _, last = typed.rpartition(" ")
        option = self._option(before.split(" ")[-1])
        if option is None or not option.takes_value:
            hyphen = "-" if last.startswith("--") else ""
            return sorted(hyphen + name for name in self._by_name if (hyphen + name).startswith(last))
        if not option.several:
            return [word for word in option.words if word.startswith(last)]
        chosen, comma, begun = last.rpartition(",")
        left = (word for word in option.words if word not in chosen.split(","))
        return [chosen + comma + word for word in left if word.startswith(begun)]

    def usage(self) -> str:
        """All options in brackets, in lines that fit the terminal."""
        lines = [f"Usage: {self._command}"]
        indented = " " * (len(lines[0]) - 1)
        for option in self._by_name.values():
            piece = f" [{_shown(option)}]"
            if len(lines[-1] + piece) > _WIDTH:
                lines.append(indented)
            lines[-1] += piece
        return "\n".join(lines)

    def explained(self) -> str:
        """Every option with its help."""
        return "\n".join(_explained(option) for option in self._by_name.values())


def _shown(option: Option) -> str:
    value = option.shown or "|".join(option.words) or ("N" if option.number else "")
    return f"{option.name} {value}" if value else option.name


def _explained(option: Option) -> str:
    value = option.shown or ("HOW" if option.words else "N" if option.number else "")
    shown = f"{option.name} {value}" if value else option.name
    first, *more = option.help
    return "\n".join([f"  {shown:{_HELP_COLUMN - 2}}{first}", *(" " * _HELP_COLUMN + line for line in more)])
