"""`trace data`: what the instructions loaded and stored, from the trace."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import listing

ROWS_AT_ONCE = 4096

_RANGE = re.compile(r"(?:^|\s)([-+]|[0-9]+(?:\s*,\s*[-+]?[0-9]+)?)\s*$")
"""As in `trace history`: an address is written in hexadecimal, or as an expression."""


def split(argument: str) -> tuple[str, str]:
    """(what is looked at, range) of an argument of `trace data`."""
    match = _RANGE.search(argument)
    if match is None:
        return argument.strip(), ""
    return argument[: match.start()].strip(), match[1]


def where(expression: str) -> list[int] | None:
    """[first byte, how many] that an expression names: the object it is, what it points at, or "address,size".

    How many is 0 for a symbol without debug information, whose size gdb does not know. Raises gdb.GdbError.
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
    """The address and size of an object; of a number or a pointer that is no object, what is at that address."""
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
    """Raises gdb.GdbError for what is no memory. *address* as an address of the target: gdb may say it is negative."""
    digits = 8 * gdb.lookup_type("void").pointer().sizeof
    if size < 1:
        raise gdb.GdbError(f"trace data: {expression}: {size} bytes cannot be looked at, give 1 or more")
    return [address & (1 << digits) - 1, size]


def lines(rows: list[list[Any]]) -> list[str]:
    """Lines for rows of `session.accesses`: [number, instruction, pc, offset, text]."""
    return [f"{number}\t{_place(*place)}:\t{text}" for number, *place, text in rows]


def _place(instruction: int | None, pc: int | None, offset: int) -> str:
    if pc is None:
        return f"@? trace byte {offset:#x}"
    return f"@{instruction} {listing.place(pc)}"
