"""Completion of the names of tasks, behind the option `-task` of list commands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import gdb

from rvtrace_gdb.gdbext import completion
from rvtrace_gdb.gdbext.tracer import tracer

_TASK = ("-task", "--task")


def words_and_tasks(text: str, word: str | None, options: Iterable[str]) -> list[str]:
    """Return the completions of `completion.words`; behind `-task` the names of the tasks that ran."""
    before, _, _ = text.rpartition(" ")
    if word is not None and before.split(" ")[-1] in _TASK:
        return completion.words(text, word, _names_of_tasks())
    return completion.words(text, word, options)


def _names_of_tasks() -> list[str]:
    """Return the names of the tasks that ran; none where nothing can tell them now."""
    with contextlib.suppress(gdb.GdbError):
        found = tracer().request("task_names", context=tracer().context())
        return [f'"{name}"' if " " in name else name for name in found["names"]]
    return []
