"""What `trace start` is to trace of all that runs: addresses of what the user named."""

from __future__ import annotations

import re
from typing import Any, Callable

import gdb

_NAME = re.compile(r"[A-Za-z_][\w$.]*")
"""It may have dots, as compilers give to parts of functions."""
COMMA = re.compile(r",(?![^(]*\))")
"""Between names, not between the types of a function's arguments."""


def resolved(options: dict[str, Any]) -> dict[str, Any]:
    """The options with addresses in place of the texts of -range and -function. Raises gdb.GdbError."""
    named = {"range": _range, "function": _function}
    found = dict(options)
    for key, address_of in named.items():
        if key in options:
            texts = [text for one in options[key] for text in ([one] if key == "range" else COMMA.split(one))]
            found[key] = [asked(key, text, address_of) for text in texts]
    return found


def asked(key: str, text: str, address_of: Callable[[str], Any]) -> Any:
    """What *address_of* says of a text of the option *key*. Raises gdb.GdbError."""
    try:
        found: Any = address_of(text.strip())
    except (gdb.error, OverflowError) as error:
        raise gdb.GdbError(f"trace start: -{key.replace('_', '-')} {text}: {error}") from None
    return found


def _range(text: str) -> list[int]:
    """[first address, end] of FROM,TO or FROM,+SIZE. Raises gdb.error."""
    first, comma, last = text.rpartition(",")
    if not comma or not first.strip() or not last.strip() or first.count("(") != first.count(")"):
        raise gdb.error("give FROM,TO or FROM,+SIZE")
    start, last = address(first.strip()), last.strip()
    end = start + int(gdb.parse_and_eval(last[1:])) if last.startswith("+") else address(last)
    if not start < end <= _mask() + 1:
        raise gdb.error(f"there is nothing from {start:#x} to before {end:#x}")
    return [start, end]


def _function(name: str) -> list[Any]:
    """[name, address of the entry]. Raises gdb.error."""
    value = _value(name)
    if not _is_function(value):
        raise gdb.error("that is not a function")
    return [name, _entry(value)]


def address(expression: str) -> int:
    """Of a function, a line (FILE:LINE), or what an expression gives. Raises gdb.error."""
    if not expression:
        raise gdb.error("a place is missing")
    try:
        value = _value(expression)
    except gdb.error as error:
        place = _place(expression)
        if place is None:
            raise error
        return place
    if _is_function(value):
        return _entry(value)
    code = value.type.strip_typedefs().code
    if code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR) or (code == gdb.TYPE_CODE_INT and value.address is not None):
        raise gdb.error(f"{expression} is neither a function nor an address")
    return int(value) & _mask()


def _value(expression: str) -> gdb.Value:
    """Raises gdb.error."""
    try:
        return gdb.parse_and_eval(expression)
    except gdb.error:
        if not _NAME.fullmatch(expression):
            raise
    try:
        return gdb.parse_and_eval(f"'{expression}'")
    except gdb.error:  # gdb may say that it has no symbol table, and mean that there is no debug information
        raise gdb.error(f'No symbol "{expression}" in current context.') from None


def _place(expression: str) -> int | None:
    """Where a breakpoint would be, if that is one place."""
    try:
        _, places = gdb.decode_line(expression)
    except gdb.error:
        return None
    addresses = {int(place.pc) & _mask() for place in places or ()}
    return addresses.pop() if len(addresses) == 1 else None


def _is_function(value: gdb.Value) -> bool:
    return bool(value.type.strip_typedefs().code == gdb.TYPE_CODE_FUNC)


def _entry(function: gdb.Value) -> int:
    if function.address is None:
        raise gdb.error("it has no code of its own, it is part of other functions")
    return int(function.address) & _mask()


def _mask() -> int:
    """gdb may say that an address is negative."""
    return (1 << 8 * gdb.lookup_type("void").pointer().sizeof) - 1
