"""The `trace` commands that show or keep what was traced."""

from __future__ import annotations

import os
import re

import gdb

from rvtrace_gdb.gdbext import accesses, completing, listing, snapshot
from rvtrace_gdb.gdbext.listing import ROWS_AT_ONCE
from rvtrace_gdb.gdbext.printing import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, program, tracer


class Dump(gdb.Command):
    """Print the messages of the trace, as the trace encoder sent them.
Usage: trace dump [/r] [RANGE | -offset BYTE]

One line for each: number, byte offset, the message and its fields; in
lower case what these stand for; after # the meaning. Filling and bytes
that are no message are lines too. /r: with the bytes.

RANGE: as for `trace history`, by the numbers of the messages.
-offset BYTE: from the message on that this byte is part of, as the
gaps in the history name it. No program is needed."""

    def __init__(self) -> None:
        super().__init__("trace dump", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        raw, numbers, offset = self._split(argument)
        if numbers not in ("", "-", "+") or offset is not None:
            self.dont_repeat()
        found = tracer().request("dump", context=tracer().context(), args=numbers, offset=offset, size=listing.size())
        print_lines(found)
        begin, end = found["begin"], found["end"]
        while begin < end:
            upto = min(begin + ROWS_AT_ONCE, end)
            for number, place, text in tracer().request("messages", begin=begin, end=upto, raw=raw or None):
                print_line(f"{number}\t0x{place:08x} {text}")
            begin = upto
        if found.get("notice"):
            print_line(found["notice"])

    def complete(self, text: str, word: str | None) -> list[str]:
        return completing.words(text, word, ["-offset"] if text.rpartition(" ")[2] else [])

    def _split(self, argument: str) -> tuple[bool, str, int | None]:
        """(whether with bytes, range text, byte offset)."""
        match = re.fullmatch(r"\s*(/r\b)?\s*(?:-offset\b\s*([^/]*?)|([^/]*?))\s*(/r)?\s*", argument)
        if match is None:
            raise gdb.GdbError(f"trace dump: {argument.strip()} is not a range. See `help trace dump`.")
        before, place, numbers, after = match.groups()
        return bool(before or after), numbers or "", None if place is None else self._offset(place)

    def _offset(self, text: str) -> int:
        try:
            value = int(gdb.parse_and_eval(text))
        except (gdb.error, OverflowError):
            value = -1
        if value < 0:
            raise gdb.GdbError(f"trace dump: -offset takes the number of a byte, got: {text or 'none'}.")
        return value


class Data(gdb.Command):
    """Print what instructions loaded and stored, oldest first.
Usage: trace data [ADDRESS | EXPRESSION | ADDRESS,SIZE] [RANGE]

EXPRESSION: a variable, or what a pointer points at (`*p`, `&x`): only
accesses to it. An address is written in hexadecimal.
RANGE: as for `trace history`, by the numbers of the accesses shown; "@"
stands before the number `trace history` gives the instruction.

Accesses are traced after `trace start -format etrace -data`."""

    def __init__(self) -> None:
        super().__init__("trace data", gdb.COMMAND_DATA, gdb.COMPLETE_SYMBOL)

    def invoke(self, argument: str, from_tty: bool) -> None:
        what, numbers = accesses.split(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        where, size = accesses.where(what), listing.size()
        found = tracer().request("accesses", context=tracer().context(), args=numbers, where=where, size=size)
        print_lines(found)
        begin, end = found["begin"], found["end"]
        while begin < end:
            upto = min(begin + accesses.ROWS_AT_ONCE, end)
            for line in accesses.lines(tracer().request("access_rows", begin=begin, end=upto)):
                print_line(line)
            begin = upto
        if found.get("notice"):
            print_line(found["notice"])


class Save(gdb.Command):
    """Save the trace, with all that is needed to read it, to a capture file.
Usage: trace save FILE.rvt"""

    def __init__(self) -> None:
        super().__init__("trace save", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument: str, from_tty: bool) -> None:
        path = _one_file(argument, "trace save FILE.rvt")
        print_lines(tracer().request("save", path=path, context=tracer().context()))


class Open(gdb.Command):
    """Look at a capture file instead of the target's trace.
Usage: trace open FILE.rvt

The program is the one gdb has loaded (`file app.elf`)."""

    def __init__(self) -> None:
        super().__init__("trace open", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument: str, from_tty: bool) -> None:
        path = _one_file(argument, "trace open FILE.rvt")
        print_lines(tracer().request("open", path=path, elf=program()))


class Snapshot(gdb.Command):
    __doc__ = snapshot.HELP

    def __init__(self) -> None:
        super().__init__("trace snapshot", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(snapshot.take(tracer().request, tracer().context(), argument))


def _one_file(argument: str, usage: str) -> str:
    words = arguments(argument, f"Usage: {usage}")
    if len(words) != 1:
        raise gdb.GdbError(f"One file name is needed. Usage: {usage}")
    return os.path.abspath(os.path.expanduser(words[0]))


COMMANDS = (Dump, Data, Save, Open, Snapshot)
