"""`trace history`: the instructions that ran."""

from __future__ import annotations

import re

import gdb

from . import listing
from .listing import ROWS_AT_ONCE
from .tracer import print_lines, tracer


class History(gdb.Command):
    """Print the instructions that ran, oldest first, as `record instruction-history` does.
Usage: trace history [/MODIFIERS] [RANGE]

Modifiers: /m or /s source lines, /r raw instruction bytes,
/f no function names, /p no mark at the current pc.

RANGE: nothing, the last ten, and then the next ten each time;
  -      the ten before those shown last
  N      ten starting with number N
  A,B    numbers A to B inclusive
  A,+N   N instructions starting with A
  A,-N   N instructions ending with A

A gap in the trace has a number of its own and says why it is there.
Of several harts the selected thread's is shown, or the one that
`set trace hart` names.
How many is set by `set record instruction-history-size`."""

    def __init__(self) -> None:
        super().__init__("trace history", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        style, numbers = self._split(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        found = tracer().request("history", context=tracer().context(), args=numbers, size=listing.size())
        print_lines(found)
        if found.get("begin") is not None:
            self._print(style, found["begin"], found["end"], found["hart"])
        if found.get("notice"):
            print(found["notice"])

    def _split(self, argument: str) -> tuple[listing.Format, str]:
        """(format, range text): modifiers may stand before the range, as in gdb, or after it."""
        match = re.fullmatch(r"\s*(?:/(\S*))?\s*([^/]*?)\s*(?:/(\S*))?\s*", argument)
        if match is None:
            raise gdb.GdbError(f"trace history: {argument.strip()} is not a range. See `help trace history`.")
        before, numbers, after = match.groups()
        letters = None if before is None and after is None else (before or "") + (after or "")
        return (listing.Format() if letters is None else listing.parse_modifiers(letters)), numbers

    def _print(self, style: listing.Format, begin: int, end: int, hart: int) -> None:
        """Print numbers begin (inclusive) to end (exclusive)."""
        lister = listing.Lister(style)
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            rows = tracer().request("rows", begin=begin, end=upto, hart=hart)
            with listing.readable_code():
                for line in lister.lines(rows):
                    print(line)
            begin = upto


COMMANDS = (History,)
