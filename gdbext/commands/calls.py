"""`trace functions` and `trace calls`: which functions ran, and who called whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import listing
from rvtrace_gdb.gdbext.listing import function_symbol
from rvtrace_gdb.gdbext.text import print_line, printable
from rvtrace_gdb.gdbext.tracer import print_lines, tracer

ROWS_AT_ONCE = 1000  # rows fetched per request: long lists appear at once and can be interrupted
DEPTH = 10  # levels of the tree that are shown without /n
MODIFIERS = "lic"


class Format(NamedTuple):
    """The modifiers of `trace functions /lic`."""

    lines: bool = False
    instructions: bool = False
    calls: bool = False


class Functions(gdb.Command):
    """Print the functions that ran, oldest first, as `record function-call-history` does.
    Usage: trace functions [/MODIFIERS] [RANGE]

    A line for each time a function ran: until it called another one,
    returned, or was interrupted.

    Modifiers: /l source file and lines, /i numbers of the instructions as
    `trace history` has them, /c indented by the calls that led there.

    RANGE: nothing, the last ten, and then the next ten each time;
      -      the ten before those shown last
      N      ten starting with number N
      A,B    numbers A to B inclusive
      A,+N   N functions starting with A
      A,-N   N functions ending with A

    The cause of a trap follows the name of its handler. A gap in the trace
    has a number of its own; after a gap the calls under way are not known,
    and levels start again.
    `set record function-call-history-size` sets how many."""

    def __init__(self) -> None:
        super().__init__("trace functions", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        style, numbers = _split(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        size = int(gdb.parameter("record function-call-history-size") or 0)
        found = tracer().request("functions", context=tracer().context(), args=numbers, size=size)
        print_lines(found)
        begin, end = found["begin"], found["end"]
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            rows = tracer().request("function_rows", begin=begin, end=upto, lines=style.lines or None)
            for row in rows:
                print_line(_line(style, *row))
            begin = upto
        if found.get("notice"):
            print_line(found["notice"])


class Calls(gdb.Command):
    """Print who called whom in the whole history, as a tree.
    Usage: trace calls [/n DEPTH]

    A line for each function in each chain of calls that led to it: how often
    it was called there, how many instructions ran in it and all it called,
    and in it alone. What took longest comes first. A function whose call is
    not in the trace has "-".

    DEPTH: how many levels are shown: 10 by default, 0 for all of them."""

    def __init__(self) -> None:
        super().__init__("trace calls", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        found = tracer().request("calls", context=tracer().context(), depth=_depth(argument))
        print_lines(found)
        begin, end = found["begin"], found["end"]
        if begin < end:
            print(f"{'calls':>12}{'instructions':>16}{'in it alone':>16}  function")
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            for row in tracer().request("call_rows", begin=begin, end=upto):
                print_line(_call(*row))
            begin = upto


def _split(argument: str) -> tuple[Format, str]:
    """Return (format, range text): modifiers may be before the range, as in gdb, or after it. Raises gdb.GdbError."""
    match = re.fullmatch(r"\s*(?:/(\S*))?\s*([^/]*?)\s*(?:/(\S*))?\s*", argument)
    if match is None:
        raise gdb.GdbError(f"trace functions: {argument.strip()} is not a range. See `help trace functions`.")
    before, numbers, after = match.groups()
    if before is None and after is None:
        return Format(), numbers
    letters = (before or "") + (after or "")
    if not letters:
        raise gdb.GdbError("Missing modifier.")
    for letter in letters:
        if letter not in MODIFIERS:
            raise gdb.GdbError(f"Invalid modifier: {letter}.")
    return Format("l" in letters, "i" in letters, "c" in letters), numbers


def _depth(argument: str) -> int:
    """Return the number of levels, 0 for all. Raises gdb.GdbError."""
    match = re.fullmatch(r"\s*(?:/n\s*([0-9]{1,9}))?\s*", argument)
    if match is None:
        raise gdb.GdbError(f"trace calls: {argument.strip()} is not /n DEPTH. See `help trace calls`.")
    return DEPTH if match[1] is None else int(match[1])


def _line(
    style: Format, number: int, first: int, last: int, pc: int | None, level: int, what: str, name: str | None,
    addresses: list[int],
) -> str:  # fmt: skip
    """Return the line for a row of `session.queries.functions`, as gdb prints it."""
    if pc is None:
        return f"{number}\t[{what}]"
    symbol = function_symbol(pc) if name is None else None
    text = f"{number}\t{'  ' * level if style.calls else ''}{listing.function_text(pc, name, symbol)}"
    if what:
        text += f" [{what}]"
    if style.instructions:
        text += f"\tinst {first},{last}"
    if style.lines:
        text += f"\tat {_lines_of(symbol, addresses)}"
    return text


def _call(
    level: int, pc: int | None, name: str | None, trap: bool, calls: int, own: int, total: int, hidden: int
) -> str:
    function = "??" if pc is None else listing.function_text(pc, name, function_symbol(pc))
    text = f"{calls or '-':>12}{total:>16}{own:>16}  {'  ' * level}{function}{' [trap]' if trap and calls else ''}"
    return f"{text}  (calls {hidden} more)" if hidden else text


def _lines_of(symbol: gdb.Symbol | None, addresses: list[int]) -> str:
    """Return FILE:FIRST,LAST of the instructions at these addresses that are from the function's own file."""
    if symbol is None:
        return ""
    file = symbol.symtab.filename
    lines = sorted(set(_numbers(file, addresses)))
    if not lines:
        return printable(file)
    return f"{printable(file)}:{lines[0]}" + ("" if len(lines) == 1 else f",{lines[-1]}")


def _numbers(file: str, addresses: list[int]) -> Iterator[int]:
    for pc in addresses:
        place = gdb.find_pc_line(pc)
        if place.line and place.symtab is not None and place.symtab.filename == file:
            yield place.line


COMMANDS = (Functions, Calls)
