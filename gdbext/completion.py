"""Completion of the words of a command, in the form that gdb expects from Python commands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import gdb

from rvtrace_gdb.gdbext import neutral

_BREAK = "break "


def words(text: str, word: str | None, options: Iterable[str]) -> list[str]:
    """Return the *options* that complete *text*, an unfinished command line, as replacements of its last *word*.

    gdb takes a hyphen for the end of a word and completes what follows it. gdb 16 calls first with word None, to find
    out which characters end a word, and ignores the result.
    """
    if word is None:
        return []
    typed = text.rpartition(" ")[2]
    before = len(typed) - len(word)
    return [option[before:] for option in options if option.startswith(typed)]


def places(typed: str) -> list[str]:
    """Return the locations at which gdb would set breakpoints: functions, files and lines that begin with *typed*."""
    with contextlib.suppress(gdb.error):
        quote = "" if typed else "'"  # gdb.execute strips blanks, and there must be something to complete
        lines = neutral.printed(f"complete {_BREAK}{typed or quote}").splitlines()
        found = (line[len(_BREAK) :].strip(quote or None) for line in lines if line.startswith(_BREAK))
        return [place for place in found if not place.startswith("-")]
    return []


def words_and_places(text: str, word: str | None, options: Iterable[str]) -> list[str] | int:
    """Return the completions of `words` and the places in the program.

    Where only places are possible, return gdb.COMPLETE_LOCATION: gdb itself completes these best.
    """
    before, _, typed = text.rpartition(" ")
    if not before and not any(option.startswith(typed) for option in options):
        return gdb.COMPLETE_LOCATION
    return words(text, word, [*options, *places(typed)]) if word is not None else []
