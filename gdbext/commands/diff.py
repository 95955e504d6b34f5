"""`trace diff`: where this run and that of another capture part, and what differs after that."""

from __future__ import annotations

import os
from typing import Any

import gdb

from rvtrace_gdb.gdbext import listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.enter_key import EnterKey
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.paged_list import PagedList, split_range
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer
from rvtrace_gdb.rows import diff_text
from rvtrace_gdb.rows.diff_rows import DiffAnswer, answer_of

DIFF = Table("trace diff FILE [RANGE]", (
    Option("-hart", ("the hart of the other capture; default: of the same number",), number="hart", least=0),
    Option("-elf", ("the program of the other capture; default: the one that it", "names"),
           text="a file", shown="FILE"),
))  # fmt: skip


class DiffCommand(Command, name="trace diff", completer=gdb.COMPLETE_FILENAME):
    __doc__ = f"""Compare this run with that of another capture: where do they part?
{DIFF.usage()}

{DIFF.explained()}

Says after which instruction the runs part first, what that instruction
tested, with both values where they are known, and where each went on.
Then the list of what differs: for each stretch its first instruction and
how many there are, in A (this trace) and in B (FILE), and the place
after which it comes; `trace goto N` goes to one of A.

Interrupts are set aside, and so are lost trace and how often a loop went
round that waits for a device, another hart or an interrupt. Another
build of the program is compared by functions and source lines.
RANGE: nothing: the first ten, Enter shows the next ten; N: ten starting
with number N of the list; A,B; A,+N; A,-N."""

    def __init__(self) -> None:
        super().__init__()
        self._enter = EnterKey()
        self._last: dict[str, Any] | None = None

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty) and self._last is not None
        rest, numbers = split_range(argument)
        if rest or self._last is None:
            self._last = parsed(rest)
        question = self._last
        if rest and not again:
            found = answer(question)
            print_lines({"lines": found.lines})
            if results.WANTED:
                results.add({"diff": results.makers["diff"](found)})
            for line in diff_text.lines(found, listing.GdbSymbols()):
                print_line(line)
            if not found.has_rows:
                return
        PagedList("differences", **question).show(self, numbers, anew=bool(rest) and not again)


def parsed(argument: str, command: str = "trace diff") -> dict[str, Any]:
    """Return what an argument asks for, as the request has it. Raises gdb.GdbError for *command*."""
    words = arguments(argument, f"Usage: {command} FILE")
    file = words.pop(0 if words and not words[0].startswith("-") else -1) if words else "-"
    try:
        given = DIFF.parse(words)
    except OptionError as error:
        raise gdb.GdbError(f"{command}: {error}") from None
    if file.startswith("-"):
        raise gdb.GdbError(f"{command}: with which capture? One file is needed. See `help trace diff`.")
    return request_of(file, given)


def request_of(file: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return a question as the request has it. *given*: the options, by their keys."""
    question: dict[str, Any] = {"other": os.path.abspath(os.path.expanduser(file))}
    if given.get("hart") is not None:
        question["other_hart"] = given["hart"]
    elf = given.get("elf")
    if elf:
        name = elf[-1] if isinstance(elf, (list, tuple)) else elf
        question["other_elf"] = os.path.abspath(os.path.expanduser(name))
    return question


def answer(question: dict[str, Any]) -> DiffAnswer:
    """Return the session's answer. Raises gdb.GdbError."""
    return answer_of(tracer().request("diff", context=tracer().context(), **question))


COMMANDS = (DiffCommand,)
