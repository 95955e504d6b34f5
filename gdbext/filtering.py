"""What `trace start` is to trace of all that runs: addresses of what the user named."""

from __future__ import annotations

import re
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import functions

COMMA = re.compile(r",(?![^(]*\))")
"""Between names, not between the types of a function's arguments."""


def resolved(options: dict[str, Any]) -> dict[str, Any]:
    """The options with addresses in place of the texts of -range and -function. Raises gdb.GdbError."""
    named = {"range": _range, "function": _function}
    found = dict(options)
    for key, address_of in named.items():
        if key in options:
            texts = [text for one in options[key] for text in ([one] if key == "range" else COMMA.split(one))]
            each = [asked(key, text, address_of) for text in texts]
            found[key] = each if key == "range" else [it for several in each for it in several]
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
    if not start < end <= functions.mask() + 1:
        raise gdb.error(f"there is nothing from {start:#x} to before {end:#x}")
    return [start, end]


def _function(name: str) -> list[list[Any]]:
    """[name, address of the entry] of each function of that name. Raises gdb.error."""
    if name.startswith("*"):
        return [[name, address(name[1:])]]
    named = functions.named(name)
    if named is None:
        functions.value(name)  # which says what is wrong with it, if it is nothing at all
        raise gdb.error("that is not a function")
    if not named.entries:
        named.only()
    return [[name, entry] for entry in named.entries]


def address(expression: str) -> int:
    """Of a function, a line (FILE:LINE), or what an expression gives. Raises gdb.error, also if these are several."""
    found = addresses(expression)
    if len(found) > 1:
        named = functions.named(expression)
        if named is not None:
            return named.only()
        raise gdb.error(f"these are {len(found)} places, give one of {', '.join(f'*{it:#x}' for it in found)}")
    return found[0]


def addresses(expression: str) -> list[int]:
    """As `address`, all that it names. Raises gdb.error."""
    expression = expression[1:] if expression.startswith("*") else expression
    if not expression:
        raise gdb.error("a place is missing")
    named = functions.named(expression)
    if named is not None:
        return named.entries or [named.only()]
    try:
        value = functions.value(expression)
    except gdb.error:
        places = functions.places(expression)
        if not places:
            raise
        return places
    code = value.type.strip_typedefs().code
    if code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR) or (code == gdb.TYPE_CODE_INT and value.address is not None):
        raise gdb.error(f"{expression} is neither a function nor an address")
    return [int(value) & functions.mask()]
