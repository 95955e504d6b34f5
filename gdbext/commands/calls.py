"""`trace functions` and `trace calls`: which functions ran, and who called whom."""

from __future__ import annotations

import re

import gdb

from rvtrace_gdb.gdbext import task_names
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.paged_list import (
    THREADS,
    THREADS_HELP,
    UNFOLDED,
    PagedList,
    modifiers_help,
    page_size,
    split_modifiers,
    split_threads,
    split_unfolded,
)

DEPTH = 10  # levels of the tree that are shown without /n


class FunctionsCommand(Command, name="trace functions"):
    __doc__ = f"""Print the functions that ran, oldest first, as `record function-call-history` does.
Usage: trace functions [-unfolded] [-task T | -process P | -thread T]
                       [/MODIFIERS] [RANGE]

A line for each time a function ran: until it called another one,
returned, or was interrupted.

{modifiers_help("functions")}

RANGE: nothing, the last ten, and then the next ten each time;
  -      the ten before those shown last
  N      ten starting with number N
  A,B    numbers A to B inclusive
  A,+N   N functions starting with A
  A,-N   N functions ending with A

Repetitions with a trap in them are folded, "x3366, @9 to @50484, every
15 instructions"; a RANGE of numbers, or -unfolded, shows them all.

{THREADS_HELP}
They have numbers of their own, which a RANGE means then.

The cause of a trap follows the name of its handler. A gap in the trace
has a number of its own; after a gap the calls under way are not known,
and levels start again.
`set record function-call-history-size` sets how many."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        argument, fold = split_unfolded(argument)
        argument, threads = split_threads("trace functions", argument)
        modifiers, numbers = split_modifiers(argument, "functions")
        size = page_size("function-call-history")
        PagedList("functions", modifiers or (), fold=fold, **threads).show(self, numbers, size=size)

    def complete(self, text: str, word: str | None) -> list[str]:
        return task_names.words_and_tasks(text, word, (*THREADS, UNFOLDED))


class CallsCommand(Command, name="trace calls"):
    """Print who called whom in the whole history, as a tree.
    Usage: trace calls [-task T | -process P | -thread T] [/n DEPTH]

    A line for each function in each chain of calls that led to it: how often
    it was called there, how many instructions ran in it and all it called,
    and in it alone. What took longest comes first. A function whose call is
    not in the trace has "-".

    -task T, -process P, -thread T: only what ran in these, see `help trace
    functions`. What a handler does behind a switch of tasks counts with the
    task on whose stack it runs.
    DEPTH: how many levels are shown: 10 by default, 0 for all of them."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        argument, threads = split_threads("trace calls", argument)
        PagedList("calls", depth=_depth(argument), **threads).show(self, "")

    def complete(self, text: str, word: str | None) -> list[str]:
        return task_names.words_and_tasks(text, word, THREADS)


def _depth(argument: str) -> int:
    """Return the number of levels, 0 for all. Raises gdb.GdbError."""
    match = re.fullmatch(r"\s*(?:/n\s*([0-9]{1,9}))?\s*", argument)
    if match is None:
        raise gdb.GdbError(f"trace calls: {argument.strip()} is not /n DEPTH. See `help trace calls`.")
    return DEPTH if match[1] is None else int(match[1])


COMMANDS = (FunctionsCommand, CallsCommand)
