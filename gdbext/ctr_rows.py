"""Lines of `trace ctr show`: control transfers that a hart recorded, youngest first, and what ran between them.

`NUMBER \\t FROM -> TO \\t TYPE, CYCLES`, and below it, without a number, how many instructions ran since the older
record next to it, or why that is not known; with /i the instructions themselves, as `trace history` prints them, but
indented.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import listing
from rvtrace_gdb.gdbext.printing import printable
from rvtrace_gdb.gdbext.tracer import tracer

INSTRUCTIONS = "i"
ANOTHER_MODE = "[a mode that is not recorded]"
_NUMBER = re.compile(r"(^\s*|,\s*)([0-9]{1,9})")


class Asked(NamedTuple):
    """What the user asked for. *style*: of the instructions, None: without them. *numbers*: the range, as rows."""

    style: listing.Format | None
    numbers: str


def parse(argument: str) -> Asked:
    """Modifiers may stand before the range, as in gdb, or after it. Raises gdb.GdbError, worded as gdb does."""
    words = re.sub(r"(?<=[^\s/])/", " /", argument).split()
    modifiers = [word for word in words if word.startswith("/")]
    numbers = " ".join(word for word in words if not word.startswith("/"))
    return Asked(_style("".join(modifiers).replace("/", "")) if modifiers else None, as_rows(numbers))


def _style(letters: str) -> listing.Format:
    """Each of `trace history` shows the instructions, too."""
    others = letters.replace(INSTRUCTIONS, "")
    return listing.parse_modifiers(others) if others or not letters else listing.Format()


def as_rows(numbers: str) -> str:
    """A range by the numbers of entries, which begin at 0, as one by rows, which begin at 1."""
    return _NUMBER.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", numbers)


class Records:
    """Formats the rows of one listing. *hart*: in whose history their instructions are."""

    def __init__(self, style: listing.Format | None, hart: int | None) -> None:
        self._hart = hart
        self._lister = None if style is None else listing.Lister(style, listing.mark(hart))

    def lines(self, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
        """Lines for rows of `ctr_rows`."""
        for row in rows:
            yield f"{row['number']}\t{_transfer(row) if row['valid'] else '[no record]'}"
            if row["between"] is not None:
                yield f"\t     [{_ran(row['between'])}]"
                yield from self._instructions(row["between"])

    def since(self, now: dict[str, Any] | None) -> Iterator[str]:
        """Lines for what ran behind the youngest record."""
        if now is not None:
            yield f"\t     [{_ran(now, ' since')}]"
            yield from self._instructions(now)

    def _instructions(self, between: dict[str, Any]) -> Iterator[str]:
        if self._lister is None:
            return
        last = between["last"]
        for begin in range(between["first"], last + 1, listing.ROWS_AT_ONCE):
            end = min(begin + listing.ROWS_AT_ONCE, last + 1)
            rows = tracer().request("rows", begin=begin, end=end, hart=self._hart)
            yield from (f"\t{line}" for line in self._lister.lines(rows))


def place(pc: int | None) -> str:
    """An address as `trace find` prints it, and its source line as `backtrace` does."""
    if pc is None:
        return ANOTHER_MODE
    line = source_line(pc)
    return listing.place(pc) + (f" at {line}" if line else "")


def source_line(pc: int) -> str:
    """FILE:LINE of an instruction; nothing if gdb does not know."""
    found = gdb.find_pc_line(pc)
    return f"{file_name(found.symtab)}:{found.line}" if found.symtab is not None and found.line > 0 else ""


def file_name(symtab: gdb.Symtab) -> str:
    """As the user wants file names displayed."""
    display = gdb.parameter("filename-display")
    if display == "absolute":
        return printable(symtab.fullname())
    return printable(os.path.basename(symtab.filename) if display == "basename" else symtab.filename)


def _transfer(row: dict[str, Any]) -> str:
    return f"{place(row['from'])} -> {place(row['to'])}\t{', '.join(_facts(row))}"


def _facts(row: dict[str, Any]) -> Iterator[str]:
    yield "type unknown" if row["type"] == "unknown" else row["type"]
    if row["mispredicted"]:
        yield "mispredicted"
    if row["cycles"] is not None:
        yield f"{'at least ' if row['saturated'] else ''}{_count(row['cycles'], 'cycle')}"


def _ran(between: dict[str, Any], since: str = "") -> str:
    """What ran between two records, with its numbers in the history; *first* > *last*: there are none."""
    first, last, why = between["first"], between["last"], between["why"]
    numbers = f": {first},{last}" if first <= last else ""
    if why:
        return f"not all is known{since}{numbers}; {why}" if numbers else f"not known{since}: {why}"
    count = _count(between["instructions"], "instruction") if numbers else "no instruction"
    return f"{count}{since}{numbers}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
