"""Places in the program as the user types them: taken apart, checked, and handed to gdb so that they cannot hurt it.

gdb 13 to 18 read a location (`gdb.decode_line`) outside of what catches their errors: an unmatched quote, `*` with an
expression that is wrong, or a lone comma ends gdb, at once or some commands later. So nothing the user has typed goes
there, or is cut into pieces, but through this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import neutral

_OPENED = {"(": ")", "[": "]", "{": "}"}
_TEMPLATE = re.compile(r"[\w>]<|operator\s*<")
_OPERATOR = re.compile(r"operator\s*(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?)")
_BEGINS = re.compile(r"[^,;*\s-]")
_ENCLOSED = re.compile(r"""(?:[^'"]*|'[^'"]+'|"[^'"]+")(?::(?:[^'"]*|'[^'"]+'|"[^'"]+"))?""")
"""A location with quotes as gdb takes them: around a whole file or function."""
_GLOBAL = re.compile(r"(?:^|[\s:])(::(?!:).*)$")
_GLOBAL_NAME = re.compile(r"::(?:\(anonymous namespace\)::.*|(?!operator\b)[^\W\d]\w*(?:\s?[<(].*|::.*)?)")
"""A name in the global scope; gdb 13 to 18 look others up there, and end with an internal error."""
_GLOBAL_OPERATOR = re.compile(r"::\s*(operator\b)")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_KEYWORD = re.compile(r"(?:if\b|thread\b|task\b|inferior\b|-force-condition\b)")


class Piece(NamedTuple):
    """A character of a text that is outside of quotes, parentheses, brackets and templates, and its place."""

    place: int
    character: str


def outer(text: str) -> Iterator[Piece]:
    """Yield the characters outside of quotes, parentheses, brackets and templates. Raises gdb.error: one is not closed.
    """
    closing: list[str] = []
    quote = ""
    for place, character in enumerate(text):
        if quote:
            if character == quote and text[place - 1] != "\\":
                quote = ""
        elif character in "'\"":
            quote = character
        elif closing and character == closing[-1]:
            closing.pop()
        elif character in _OPENED:
            closing.append(_OPENED[character])
        elif character == "<" and _opens_template(text, place):
            closing.append(">")
        elif not closing:
            yield Piece(place, character)
    if quote:
        raise gdb.error("unmatched quote")
    if closing:
        raise gdb.error(f"a {closing[-1]} is missing")


def _opens_template(text: str, place: int) -> bool:
    """Return whether the < at *place* begins the arguments of a template: it follows a name, and a > closes it."""
    after = text[place + 1 : place + 2]
    if not place or not (text[place - 1].isalnum() or text[place - 1] == "_") or after in ("<", "=", " ", ""):
        return False
    return ">" in text[place:] and not text[:place].endswith("operator")


def split(text: str, separator: str = ",") -> list[str]:
    """Return the parts of a text between the outer separators. Raises gdb.error: a quote or parenthesis is not closed.
    """
    places = [it.place for it in outer(text) if it.character == separator]
    begins = [0, *(place + 1 for place in places)]
    return [text[begin:end].strip() for begin, end in zip(begins, [*places, len(text)])]


def split_last(text: str) -> tuple[str, str] | None:
    """Return what is before and behind the last outer comma, None if there is none. Raises gdb.error as `split`."""
    parts = split(text)
    return (text[: text.rindex(",", 0, len(text) - len(parts[-1]))].strip(), parts[-1]) if len(parts) > 1 else None


def words(text: str) -> list[str]:
    """Return the words of a text: blanks in quotes, parentheses and templates do not end one. Raises gdb.error."""
    places = [it.place for it in outer(text) if it.character.isspace()]
    begins = [0, *(place + 1 for place in places)]
    return [word for begin, end in zip(begins, [*places, len(text)]) if (word := text[begin:end].strip())]


def check(text: str) -> None:
    """Raise gdb.error, in gdb's words where it has some, for a text that is not a location, or one with a condition."""
    if not text.strip():
        raise gdb.error("Empty line specification.")
    if not text.isprintable():
        raise gdb.error("it contains characters that cannot be printed")
    check_unconditional(text)
    neutral.refuse(text)
    _check_global(text)
    if _ENCLOSED.fullmatch(text.strip()) is None:
        raise gdb.error("quotes go around a whole name")
    quoted = [it[1:-1] for it in _QUOTED.findall(text)]
    if not all(map(_is_balanced, [*quoted, _QUOTED.sub("", text)])):
        raise gdb.error("a parenthesis, bracket or < has no other")
    if not _BEGINS.match(text.strip()) or len(split(text)) > 1:
        raise gdb.error(f'malformed linespec error: unexpected string, "{text.strip()}".')


def _check_global(text: str) -> None:
    """Raise gdb.error for a name in the global scope that is none."""
    for part in (*(it[1:-1] for it in _QUOTED.findall(text)), _QUOTED.sub("", text)):
        found = _GLOBAL.search(part.strip())
        if found is not None and _is_balanced(found[1]) and _GLOBAL_NAME.fullmatch(found[1]) is None:
            raise gdb.error(f'Function "{text.strip()}" not defined.')


def check_given(text: str) -> None:
    """Raise gdb.error for a location that would end gdb where a breakpoint is set there, which takes more forms:
    `-function NAME`, `*EXPRESSION`, `+1`, and none for the selected line.
    """
    if text[:1] not in ("", "-", "+", "*"):
        check(text)
        return
    for _ in outer(text):  # an unmatched quote
        pass
    for word in (text, *text.split()):
        neutral.refuse(word)
    _check_global(text)


def _is_balanced(name: str) -> bool:
    """Return whether all parentheses, brackets and templates of a name are closed: gdb also counts them."""
    closing: list[str] = []
    for character in _OPERATOR.sub("operator", name):
        if character in "([{<":
            closing.append({**_OPENED, "<": ">"}[character])
        elif character in ")]}>" and (not closing or closing.pop() != character):
            return False
    return not closing


def check_unconditional(text: str) -> None:
    """Raise gdb.error for a location with a condition, or a thread, as breakpoints have them."""
    places = {it.place for it in outer(text)}
    for match in re.finditer(r"\S+", text):
        if match.start() in places and _KEYWORD.fullmatch(match[0]) and match[0] != text.strip():
            way = f"`break {text.strip()}`, then `reverse-continue`, stops where it holds"
            raise gdb.error(f"`{match[0]}` is not taken here: {way}")


def refuse_condition(command: str, argument: str) -> None:
    """Raise gdb.GdbError for *command* if its argument is a place with a condition: a trace may not have the values."""
    try:
        check_unconditional(argument)
    except gdb.error as error:
        raise gdb.GdbError(f"{command}: {argument}: {error}") from None


def decode(text: str) -> list[gdb.Symtab_and_line]:
    """Return the places that a location means: FUNCTION, FILE:LINE, FILE:FUNCTION, *EXPRESSION. Raises gdb.error."""
    text = text.strip()
    if text.startswith("*"):
        value = neutral.evaluate(text[1:])
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_FUNC and value.address is not None:
            value = value.address
        address = int(value) & neutral.address_mask()
        with neutral.c_language():
            return list(gdb.decode_line(f"*{address:#x}")[1] or ())
    text = _GLOBAL_OPERATOR.sub(r"\1", text, count=1) if _GLOBAL_OPERATOR.match(text) else text
    check(text)
    return list(gdb.decode_line(text)[1] or ())
