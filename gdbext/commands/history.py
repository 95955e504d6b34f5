"""`trace history`: the instructions that ran."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, listing, settings
from rvtrace_gdb.gdbext.listing import ROWS_AT_ONCE
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer

ALL = "-all"


class History(gdb.Command):
    """Print the instructions that ran, oldest first, as `record instruction-history` does.
    Usage: trace history [-all] [/MODIFIERS] [RANGE]

    Modifiers: /m or /s source lines, /r raw instruction bytes,
    /f no function names, /p no mark at the current instruction,
    /a nothing but instructions and gaps, /t no times.

    RANGE: nothing, the last ten, and then the next ten each time;
      -      the ten before those shown last
      N      ten starting with number N
      A,B    numbers A to B inclusive
      A,+N   N instructions starting with A
      A,-N   N instructions ending with A
    In the past the first ten start where you are.

    A gap in the trace has a number of its own and says why it is there.
    Lines in brackets without a number are what happened in between: traps,
    changes of privilege or context, tracing switched off and on, and, where
    the trace has timestamps, the time with the ticks since the last one.

    Of several harts the selected thread's is shown, or the one that
    `set trace hart` names; with -all those of all harts, in the order of
    their times: each line has its number in this list, then HART:NUMBER.
    RANGE is by the numbers of the list, and HART:NUMBER may stand for one.
    `set record instruction-history-size` sets how many."""

    def __init__(self) -> None:
        super().__init__("trace history", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        asked = _parse(argument)
        if asked.numbers not in ("", "-", "+"):
            self.dont_repeat()
        method, pages = ("interleaved", _interleaved) if asked.every_hart else ("history", _of_one)
        found = _request(method, asked.numbers)
        print_lines(found)
        if found.get("begin") is not None:
            for lines in pages(asked.style, found["begin"], found["end"], found["hart"]):
                with listing.readable_code():
                    for line in lines:
                        print_line(line)
        if found.get("notice"):
            print_line(found["notice"])

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, [ALL] if text.rpartition(" ")[2] else [])


COMMANDS = (History,)


class _Asked(NamedTuple):
    """The parsed argument: the format, the range, and whether all harts are shown."""

    style: listing.Format
    numbers: str
    every_hart: bool


def _parse(argument: str) -> _Asked:
    """Parse the argument: options may be before the range, as in gdb, or after it. Raises gdb.GdbError, as gdb does."""
    words = re.sub(r"(?<=[^\s/])/", " /", argument).split()
    modifiers = [word for word in words if word.startswith("/")]
    rest = [word for word in words if not word.startswith("/") and word != ALL]
    letters = "".join(modifiers).replace("/", "")
    style = listing.parse_modifiers(letters) if modifiers else listing.Format()
    return _Asked(style, " ".join(rest), ALL in words)


def _request(method: str, numbers: str) -> dict[str, Any]:
    context = tracer().context()
    found: dict[str, Any] = tracer().request(
        method, context=context, args=numbers, size=listing.page_size(), at=_home(context["thread_hart"])
    )
    return found


def _home(thread_hart: int | None) -> int | None:
    """Return the number at which gdb is in the past, if it is in the history that is shown."""
    elsewhere = settings.hart() is not None and thread_hart not in (None, settings.hart())
    return None if elsewhere else position.number()


def _of_one(style: listing.Format, begin: int, end: int, hart: int) -> Iterator[Iterator[str]]:
    """Return the lines numbered *begin* (inclusive) to *end* (exclusive) of a hart's history, in pieces."""
    lister = listing.Lister(style, listing.current_mark(hart))
    for first, upto in _pieces(begin, end):
        rows = tracer().request("rows", begin=first, end=upto, hart=hart)
        between = []
        if not style.omit_events:
            between = tracer().request("between", begin=first, end=upto, hart=hart, times=_unless(style.omit_times))
        yield lister.lines(rows, between)


def _interleaved(style: listing.Format, begin: int, end: int, hart: int) -> Iterator[Iterator[str]]:
    """Return the same of one list with the histories of all harts. *hart*: the session's number for that list."""
    listers: dict[int, listing.Lister] = {}
    for first, upto in _pieces(begin, end):
        what = {"events": _unless(style.omit_events), "times": _unless(style.omit_times)}
        for number, of, rows, between in tracer().request("interleaved_rows", begin=first, end=upto, hart=hart, **what):
            if of not in listers:
                listers[of] = listing.Lister(style, listing.current_mark(of))
            yield listers[of].lines(rows, between, _numbering(of, number - rows[0][0]))


def _numbering(hart: int, before: int) -> Callable[[int | None], str]:
    """Return a function for the beginning of a line: number in the list, hart, number in the hart's history."""
    return lambda number: f"\t{hart}:" if number is None else f"{before + number}\t{hart}:{number}"


def _pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    for first in range(begin, end, ROWS_AT_ONCE):
        yield first, min(first + ROWS_AT_ONCE, end)


def _unless(omitted: bool) -> bool | None:
    """Return the value of a request's flag: true, or left out."""
    return None if omitted else True
