"""`trace log`: what a dprintf would have printed, each time the program was at a place.

The session evaluates the expressions by the debug information, for the rows that are shown. What it does not understand
gdb evaluates itself where it is in the past (`gdbext.past_values`).
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, location, past_values
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import find
from rvtrace_gdb.gdbext.enter_key import EnterKey
from rvtrace_gdb.gdbext.paged_list import SINCE, PagedList, split_range, split_since
from rvtrace_gdb.gdbext.tracer import SessionRefusal
from rvtrace_gdb.rows.log_text import log_arguments

_PART = re.compile(r"\s*-?-(range|time)(?:\s+(\S+)|\s*$)")
_COMMA = re.compile(r"^([^\s,]+),\s*(?=\")")
"""Behind the place, as `dprintf` has it: `fib,"n=%d\\n",n`."""
NOT_UNDERSTOOD = "NotUnderstood"


class LogQuestion(NamedTuple):
    """What is logged: the parameters of the list, and the RANGE of its rows."""

    parameters: dict[str, Any]
    numbers: str


class LogCommand(Command, name="trace log"):
    """Print what a dprintf would have printed, each time a place ran.
    Usage: trace log [PART] WHERE [/LETTER] EXPR[, EXPR...] [if COND] [RANGE]
           trace log [PART] WHERE "FORMAT"[, EXPR...] [if COND] [RANGE]

    WHERE   a place of `trace find`; of a function it is where a breakpoint
            stops, behind the prologue. *FUNCTION: its first instruction
    EXPR    any expression, with the values that variables, registers and
            memory had then; nothing runs, and nothing is stopped. What is
            not known is <unavailable>: see `trace values`
    FORMAT  as in printf; /x: as in `print /x`
    COND    only where it holds; where that is not known, the row says so
    PART    -range A,B: only these instructions of `trace history`
            -time T[,T]: only what ran then, in ticks of the trace
            -from N: from the first row at or after instruction N
    RANGE   of the rows of this list, as for `trace find`; default: the
            newest ten, and Enter, + and - turn the page

    Each row has its number, "@" and the number for `trace goto`, and its
    source line. Where trace is missing between two rows, a row says so.
    Expressions that only gdb understands (convenience functions, values
    of Rust) are evaluated by gdb: go into the past first.
    nothing: the same as last time."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Any] | None = None
        self._enter = EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        argument, since = split_since("trace log", argument)
        if argument.strip() in ("", "+", "-") and self._last is not None:
            question = LogQuestion(self._last, argument.strip())
        else:
            question = parsed(argument, "trace log")
        anew = bool(argument.strip()) and not again and question.numbers not in ("+", "-")
        self._last = question.parameters
        try:
            PagedList("log", **question.parameters, **({} if again else since)).show(self, question.numbers, anew=anew)
        except SessionRefusal as refusal:
            if refusal.kind != NOT_UNDERSTOOD:
                raise
            past_values.show_log(self, question.parameters, question.numbers, str(refusal), since)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words_and_places(text, word, (SINCE, "-range", "-time"))


def parsed(argument: str, command: str) -> LogQuestion:
    """Return what an argument asks for. Raises gdb.GdbError for *command*."""
    part, argument = _split_part(argument, command)
    where, rest = _split_place(argument.strip(), command)
    asks = log_arguments(rest)
    if not asks.expressions or "" in asks.expressions:
        raise gdb.GdbError(f"{command}: what is to be printed there? Expressions, or a format: see `help {command}`.")
    place = find.parse_location(where, command)
    parameters = {"where": place, "expressions": asks.expressions, "condition": asks.condition, "letter": asks.letter}
    return LogQuestion({**parameters, **part}, asks.numbers)


def _split_part(argument: str, command: str) -> tuple[dict[str, str], str]:
    """Return the part that the options at the beginning of an argument choose, and the rest. Raises gdb.GdbError."""
    part: dict[str, str] = {}
    while (given := _PART.match(argument)) is not None:
        if given[2] is None:
            raise gdb.GdbError(f"{command}: -{given[1]}: which part? See `help {command}`.")
        part["numbers" if given[1] == "range" else "time"] = given[2]
        argument = argument[given.end() :]
    return part, argument


def _split_place(argument: str, command: str) -> tuple[str, str]:
    """Return the place at the beginning of an argument, and the rest. Raises gdb.GdbError."""
    argument = _COMMA.sub(r"\1 ", argument)
    end = next((it.place for it in _outer_blanks(argument)), len(argument))
    if not argument[:end]:
        raise gdb.GdbError(f"{command}: where? A place of `trace find`, then expressions: see `help {command}`.")
    return argument[:end], argument[end:].strip()


def _outer_blanks(argument: str) -> list[location.Piece]:
    """Return the blanks that end words; of a text with a quote that is not closed, all up to there."""
    blanks: list[location.Piece] = []
    with contextlib.suppress(gdb.error):  # the expressions are read by others
        blanks.extend(it for it in location.outer(argument) if it.character.isspace())
    return blanks


class CallsOfCommand(Command, name="trace calls-of"):
    """Print each call of a function, oldest first.
    Usage: trace calls-of [PART] FUNCTION [RANGE]

    From where it was called, its arguments by name, what it returned, how
    many instructions it took with those of what it called and of handlers
    that ran meanwhile (and ticks, where the trace has times), how many calls
    of the same function it is in ("depth"), and what it called itself.
    What is not known is <unavailable>; a call that had not returned, and
    one with a gap of the trace in it, says so.

    FUNCTION  also FILE:FUNCTION; of several with that name, all
    PART      -range A,B: only those that begin at these instructions of
              `trace history`; -time T[,T]: that begin then, in ticks
              -from N: from the first one at or after instruction N
    RANGE     of the rows of this list, as for `trace find`; default: the
              newest ten, and Enter, + and - turn the page
    nothing   the same as last time"""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Any] | None = None
        self._enter = EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        argument, since = split_since("trace calls-of", argument)
        part, argument = _split_part(argument, "trace calls-of")
        function, numbers = split_range(argument)
        if function or self._last is None:
            self._last = {"where": find.parse_location(function, "trace calls-of"), **part}
        question = {**self._last, **({} if again else since)}
        PagedList("calls_of", **question).show(self, numbers, anew=bool(function) and not again)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words_and_places(text, word, (SINCE, "-range", "-time"))


COMMANDS = (LogCommand, CallsOfCommand)
