"""The options of `trace start`: one table from which they are parsed, explained and completed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

_HELP_COLUMN = 25


class Option(NamedTuple):
    """An option as the user types it, *name* with its hyphen. *help*: lines.

    *words*: what may stand after it. *number*: what a number after it counts. Neither: it stands alone.
    """

    name: str
    help: tuple[str, ...]
    words: tuple[str, ...] = ()
    number: str = ""

    @property
    def key(self) -> str:
        """Its name in the request to the session."""
        return self.name[1:].replace("-", "_")


OPTIONS = (
    Option("-format", ("the protocol, where the encoder has more than one",), words=("ntrace", "etrace")),
    Option("-stop-on-wrap", ("stop when the buffer is full, and keep the beginning;",
                             "without it the buffer keeps the newest part")),
    Option("-stall", ("stall the hart rather than lose trace",)),
    Option("-sync-period", ("full address about every N halfwords of code",
                            "(rounded up to a power of two)"), number="halfwords"),
    Option("-btm", ("report each taken branch in a message of its own,",
                    "instead of all outcomes as a history of bits (HTM)")),
    Option("-implicit-return", ("leave out returns to where the call came from; the",
                                "encoder follows calls in its own way (on: all that",
                                "E-Trace has), or with a counter (any changed return",
                                "address makes the trace wrong), or a stack of",
                                "partial or full addresses"),
           words=("off", "on", "counter", "partial", "full")),
    Option("-repeated-history", ("count repeated branches of loops",)),
    Option("-sequential-jumps", ("leave out jumps to an address that the instruction",
                                 "before them loads")),
    Option("-address-compression", ("leave out high bits of addresses that are all alike",)),
    Option("-all-jumps", ("report direct jumps and calls, too: longer, but",
                          "with more points in time")),
    Option("-timestamps", ("tell the time with each message",)),
    Option("-context", ("tell privilege mode and context (scontext, hcontext)",)),
    Option("-full-addresses", ("E-Trace: send addresses in full, not differences",)),
    Option("-implicit-exceptions", ("E-Trace: leave out the addresses of trap handlers",)),
    Option("-branch-prediction", ("E-Trace: count branches that go as predicted",)),
    Option("-jump-target-cache", ("E-Trace: short numbers for recent jump targets",)),
    Option("-data", ("E-Trace: trace loads and stores, too; `trace data`",
                     "shows them",)),
    Option("-no-data-values", ("... without values",)),
    Option("-no-data-addresses", ("... without addresses",)),
    Option("-full-data-addresses", ("... with addresses in full, not differences",)),
)  # fmt: skip
_BY_NAME = {option.name: option for option in OPTIONS}


class BadOption(ValueError):
    """What is wrong with the options, for the user."""


def parse(words: Iterable[str]) -> dict[str, Any]:
    """The options of a request from the words of a command line. Raises BadOption."""
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        option = _BY_NAME.get(word)
        if option is None:
            raise BadOption(f"unknown option {word}. See `help trace start`.")
        found[option.key] = _value(option, rest)
    return found


def _value(option: Option, rest: Iterable[str]) -> Any:
    if not option.words and not option.number:
        return True
    text = next(iter(rest), "")
    got = f"got: {text or 'none'}."
    if option.words and text not in option.words:
        raise BadOption(f"{option.name} takes one of {', '.join(option.words)}, {got}")
    if option.number:
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise BadOption(f"{option.name} takes a number of {option.number}, {got}")
        return int(text)
    return text


def complete(typed: str) -> list[str]:
    """What the last word of a command line can become."""
    before, _, last = typed.rpartition(" ")
    option = _BY_NAME.get(before.split(" ")[-1])
    if option is not None and (option.words or option.number):
        return [word for word in option.words if word.startswith(last)]
    return sorted(name for name in _BY_NAME if name.startswith(last))


def usage() -> str:
    """All options in brackets, in lines that fit the terminal."""
    lines = ["Usage: trace start"]
    for option in OPTIONS:
        piece = f" [{_shown(option)}]"
        if len(lines[-1] + piece) > 78:
            lines.append(" " * 17)
        lines[-1] += piece
    return "\n".join(lines)


def explained() -> str:
    """Every option with its help."""
    return "\n".join(_explained(option) for option in OPTIONS)


def _shown(option: Option) -> str:
    return option.name + (f" {'|'.join(option.words)}" if option.words else " N" if option.number else "")


def _explained(option: Option) -> str:
    shown = option.name + (" HOW" if option.words else " N" if option.number else "")
    first, *more = option.help
    return "\n".join([f"  {shown:{_HELP_COLUMN - 2}}{first}", *(" " * _HELP_COLUMN + line for line in more)])
