"""`trace data` and `trace dump`: the memory accesses in a trace, and its messages."""

from __future__ import annotations

import contextlib
import re

import gdb

from rvtrace_gdb.gdbext import completion, location, neutral
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.enter_key import EnterKey
from rvtrace_gdb.gdbext.paged_list import PagedList, split_modifiers, split_range


def named_memory(expression: str) -> list[int] | None:
    """Return [address, size] of the memory that an expression names: an object, what it points at, or "address,size".

    The size is 0 for a symbol without debug information, whose size gdb does not know. Raises gdb.GdbError.
    """
    if not expression:
        return None
    try:
        sized = location.split_last(expression)
        if sized is not None:
            return _checked_range(expression, _object(sized[0])[0], int(neutral.evaluate(sized[1])))
        address, known = _object(expression)
        return [address, 0] if known is None else _checked_range(expression, address, known)
    except (gdb.error, OverflowError) as error:
        raise gdb.GdbError(f"trace data: {expression}: {error}") from None


def _object(expression: str) -> tuple[int, int | None]:
    """Return the address and size of an object; for a number or a pointer, of what is at that address."""
    if _NAME.fullmatch(expression) and gdb.lookup_global_symbol(expression) is None:
        with contextlib.suppress(gdb.error):
            address = neutral.evaluate(f"&{expression}")
            if "no debug info" in str(address.type):
                return int(address), None
    value = neutral.evaluate(expression)
    if value.address is not None:
        return int(value.address), value.type.sizeof
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().code not in _SIZELESS:
        return int(value), kind.target().sizeof
    return int(value), 1


_NAME = re.compile(r"[A-Za-z_$][\w$.]*")
_SIZELESS = (gdb.TYPE_CODE_VOID, gdb.TYPE_CODE_FUNC)


def _checked_range(expression: str, address: int, size: int) -> list[int]:
    """Return [address, size], the address without a sign: gdb may return a negative one. Raises gdb.GdbError."""
    digits = 8 * neutral.address_bytes()
    if size < 1:
        raise gdb.GdbError(f"trace data: {expression}: {size} bytes cannot be shown: give 1 or more")
    return [address & (1 << digits) - 1, size]


class DumpCommand(Command, name="trace dump"):
    """Print the messages of the trace, as the trace encoder sent them.
Usage: trace dump [/r] [RANGE | -offset BYTE]

One line for each: number, byte offset, the message and its fields; in
lower case the values derived from them; after # the meaning. Padding and
bytes that are not a message have lines too. /r: with the bytes.

RANGE: as for `trace history`, by the numbers of the messages.
-offset BYTE: start with the message that contains this byte; the gaps in
the history name such bytes. No program is needed."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        modifiers, numbers = split_modifiers(argument, "messages")
        asked = re.fullmatch(r"-offset\b\s*(.*)", numbers)
        if asked:
            self.dont_repeat()
        offset = self._offset(asked[1]) if asked else None
        found = PagedList("messages", modifiers or (), offset=offset)
        found.show(self, "" if asked else numbers)

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, ["-offset"] if text.rpartition(" ")[2] else [])

    def _offset(self, text: str) -> int:
        try:
            value = int(neutral.evaluate(text))
        except (gdb.error, OverflowError):
            value = -1
        if value < 0:
            raise gdb.GdbError(f"trace dump: -offset takes the number of a byte, got: {text or 'none'}.")
        return value


class DataCommand(Command, name="trace data", completer=gdb.COMPLETE_SYMBOL):
    """Print what instructions loaded and stored, oldest first.
Usage: trace data [ADDRESS | EXPRESSION | ADDRESS,SIZE] [RANGE]

EXPRESSION: a variable, or what a pointer points at (`*p`, `&x`): only
accesses to it. An address is written in hexadecimal.
RANGE: as for `trace history`, by the numbers of the accesses shown; "@"
stands before the number `trace history` gives the instruction.

Accesses are traced after `trace start -format etrace -data`."""

    def __init__(self) -> None:
        super().__init__()
        self._enter = EnterKey()

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        what, numbers = split_range(argument)
        found = PagedList("accesses", where=named_memory(what))
        found.show(self, numbers, anew=bool(what) and not again)


COMMANDS = (DumpCommand, DataCommand)
