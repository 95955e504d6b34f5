"""Completion of the names of tasks, behind the option `-task` of list commands."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable

import gdb

from rvtrace_gdb.gdbext import completion
from rvtrace_gdb.gdbext.tracer import tracer

_TASK = re.compile(r"""(?:^|\s)--?task\s+(?P<typed>"[^"]*|'[^']*|[^\s"']\S*|)$""")
"""A command line that ends in a task, which may have begun: a name with blanks is in quotes."""
_PLAIN = re.compile(r"[^\s\"']+")


def words_and_tasks(text: str, word: str | None, options: Iterable[str]) -> list[str]:
    """Return the completions of `completion.words`; behind `-task` what the tasks that ran are called."""
    tasks = completed_tasks(text, word)
    return completion.words(text, word, options) if tasks is None else tasks


def completed_tasks(text: str, word: str | None) -> list[str] | None:
    """Return the tasks that complete an unfinished command line, in the form of `completion.words`; None: it does not
    end in a task.
    """
    found = None if word is None else _TASK.search(text)
    if found is None or word is None:
        return None
    typed = found["typed"]
    quote = typed[:1] if typed[:1] in ("'", '"') else ""
    before = len(typed) - len(word)
    pairs = ((name, _quoted(name, quote)) for name in _names_of_tasks())
    return [
        text[before:]
        for name, text in pairs
        if text is not None and (text.startswith(typed) or (not before and name.startswith(typed)))
    ]


def _quoted(name: str, quote: str) -> str | None:
    """Return a name as it is typed. *quote*: with which the user began it, "": with none; None: it has that one. gdb
    itself ends what the user began with a quote.
    """
    if quote:
        return None if quote in name else f"{quote}{name}"
    if _PLAIN.fullmatch(name):
        return name
    quote = "'" if '"' in name else '"'
    return f"{quote}{name}{quote}"


def _names_of_tasks() -> list[str]:
    """Return what the tasks that ran are called; nothing where nothing can tell it now."""
    with contextlib.suppress(gdb.GdbError):
        found = tracer().request("task_names", context=tracer().context())
        names: list[str] = found["names"]
        return names
    return []
