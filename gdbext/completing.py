"""Completion of the words of a command, as gdb wants it from Python."""

from __future__ import annotations

from collections.abc import Iterable


def words(text: str, word: str | None, options: Iterable[str]) -> list[str]:
    """Those *options* that may stand at the end of *text*, an unfinished command line, of which gdb completes *word*.

    gdb takes a hyphen for the end of a word and completes what follows it. gdb 16 asks first which characters end a
    word, without one: the answer is taken for nothing.
    """
    if word is None:
        return []
    typed = text.rpartition(" ")[2]
    before = len(typed) - len(word)
    return [option[before:] for option in options if option.startswith(typed)]
