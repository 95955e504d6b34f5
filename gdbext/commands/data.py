"""`trace data` and `trace dump`: the memory accesses in a trace, and its messages."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, listing
from rvtrace_gdb.gdbext.listing import ROWS_AT_ONCE
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer

ACCESSES_AT_ONCE = 4096

_RANGE = re.compile(r"(?:^|\s)([-+]|[0-9]+(?:\s*,\s*[-+]?[0-9]+)?)\s*$")
"""A range as in `trace history`; an address is written in hexadecimal, or as an expression."""


def split_range(argument: str) -> tuple[str, str]:
    """Split an argument of `trace data` into (expression, range)."""
    match = _RANGE.search(argument)
    if match is None:
        return argument.strip(), ""
    return argument[: match.start()].strip(), match[1]


def named_memory(expression: str) -> list[int] | None:
    """Return [address, size] of the memory that an expression names: an object, what it points at, or "address,size".

    The size is 0 for a symbol without debug information, whose size gdb does not know. Raises gdb.GdbError.
    """
    if not expression:
        return None
    place, comma, size = expression.rpartition(",")
    try:
        if comma and place.count("(") == place.count(")"):
            return _checked(expression, _object(place)[0], int(gdb.parse_and_eval(size)))
        address, known = _object(expression)
        return [address, 0] if known is None else _checked(expression, address, known)
    except (gdb.error, OverflowError) as error:
        raise gdb.GdbError(f"trace data: {expression}: {error}") from None


def _object(expression: str) -> tuple[int, int | None]:
    """Return the address and size of an object; for a number or a pointer, of what is at that address."""
    if _NAME.fullmatch(expression) and gdb.lookup_global_symbol(expression) is None:
        with contextlib.suppress(gdb.error):
            address = gdb.parse_and_eval(f"&{expression}")
            if "no debug info" in str(address.type):
                return int(address), None
    value = gdb.parse_and_eval(expression)
    if value.address is not None:
        return int(value.address), value.type.sizeof
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().code not in _SIZELESS:
        return int(value), kind.target().sizeof
    return int(value), 1


_NAME = re.compile(r"[A-Za-z_$][\w$.]*")
_SIZELESS = (gdb.TYPE_CODE_VOID, gdb.TYPE_CODE_FUNC)


def _checked(expression: str, address: int, size: int) -> list[int]:
    """Return [address, size], the address without a sign: gdb may return a negative one. Raises gdb.GdbError."""
    digits = 8 * gdb.lookup_type("void").pointer().sizeof
    if size < 1:
        raise gdb.GdbError(f"trace data: {expression}: {size} bytes cannot be shown: give 1 or more")
    return [address & (1 << digits) - 1, size]


def access_lines(rows: list[list[Any]]) -> list[str]:
    """Return the lines for rows of `session.queries.search`: [number, instruction, pc, offset, text]."""
    return [f"{number}\t{_place(*place)}:\t{text}" for number, *place, text in rows]


def _place(instruction: int | None, pc: int | None, offset: int) -> str:
    if pc is None:
        return f"@? trace byte {offset:#x}"
    return f"@{instruction} {listing.address_text(pc)}"


class Dump(gdb.Command):
    """Print the messages of the trace, as the trace encoder sent them.
Usage: trace dump [/r] [RANGE | -offset BYTE]

One line for each: number, byte offset, the message and its fields; in
lower case the values derived from them; after # the meaning. Padding and
bytes that are not a message have lines too. /r: with the bytes.

RANGE: as for `trace history`, by the numbers of the messages.
-offset BYTE: start with the message that contains this byte; the gaps in
the history name such bytes. No program is needed."""

    def __init__(self) -> None:
        super().__init__("trace dump", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        raw, numbers, offset = self._split(argument)
        if numbers not in ("", "-", "+") or offset is not None:
            self.dont_repeat()
        context, size = tracer().context(), listing.page_size()
        found = tracer().request("dump", context=context, args=numbers, offset=offset, size=size)
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
        return completion.words(text, word, ["-offset"] if text.rpartition(" ")[2] else [])

    def _split(self, argument: str) -> tuple[bool, str, int | None]:
        """Return (whether with bytes, range text, byte offset). Raises gdb.GdbError."""
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
        what, numbers = split_range(argument)
        if numbers not in ("", "-", "+"):
            self.dont_repeat()
        where, size = named_memory(what), listing.page_size()
        found = tracer().request("accesses", context=tracer().context(), args=numbers, where=where, size=size)
        print_lines(found)
        begin, end = found["begin"], found["end"]
        while begin < end:
            upto = min(begin + ACCESSES_AT_ONCE, end)
            for line in access_lines(tracer().request("access_rows", begin=begin, end=upto)):
                print_line(line)
            begin = upto
        if found.get("notice"):
            print_line(found["notice"])


COMMANDS = (Dump, Data)
