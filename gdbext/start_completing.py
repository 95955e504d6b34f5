"""Completion of `trace start`: options, what they can choose from, and places in the program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import gdb

from rvtrace_gdb.gdbext import completing, start_options
from rvtrace_gdb.gdbext.tracer import tracer


def complete(text: str, word: str | None) -> list[str]:
    """What gdb is to put in place of *word*, the end of *text*."""
    if word is None:
        return []
    before, _, last = text.rpartition(" ")
    option = start_options.option(before.split(" ")[-1])
    if option is not None and option.symbols:
        return completing.words(text, word, _places(last))
    offered = _choices() if option is not None and option.several and not option.words else {}
    return completing.words(text, word, start_options.complete(text, offered))


def _places(typed: str) -> list[str]:
    """What becomes of the last of the places in *typed*."""
    chosen, comma, begun = typed.rpartition(",")
    return [chosen + comma + place for place in completing.places(begun)]


def _choices() -> dict[str, Iterable[str]]:
    """None where they cannot be found out: a completion has no errors."""
    with contextlib.suppress(gdb.error, gdb.GdbError):
        found: dict[str, Iterable[str]] = tracer().request("choices", context=tracer().context())
        return found
    return {}
