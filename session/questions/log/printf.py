"""Formats as gdb's `printf` and `dprintf` take them ("i=%d\\n"), filled in with values of the past."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.evaluator import Evaluator
from rvtrace_gdb.decode.expressions.formatting import string_at
from rvtrace_gdb.decode.expressions.locations import UNAVAILABLE, ExpressionMoment, UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression
from rvtrace_gdb.decode.expressions.types import Array, Pointer, is_float, stripped
from rvtrace_gdb.decode.expressions.values import TypedValue, content_of, scalar_of

_ESCAPES = {"n": "\n", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "r": "\r", "v": "\v", "e": "\033", "\\": "\\",
            '"': '"'}  # fmt: skip
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_PIECE = re.compile(r"%([-+ #0']*)([0-9]*)(?:\.([0-9]*))?(hh|h|ll|l|j|z|t|L|H|D|DD)?([a-zA-Z%])|%")
_SIZES = {"hh": 1, "h": 2, "": 4, "l": 0, "ll": 8, "j": 8, "z": 0, "t": 0}
_LONGEST = 1 << 12  # characters of a string


class FormatPiece(NamedTuple):
    """A part of a format: a text, or a value: *flags*, *width*, *precision* and *size* as C has them, its *letter*."""

    text: str
    letter: str = ""
    flags: str = ""
    width: int = 0
    precision: int | None = None
    size: str = ""


def parsed_format(text: str) -> Sequence[FormatPiece]:
    """Return the parts of a format, which is still in its quotes. Raises BadExpression."""
    if len(text) < 2 or not text.endswith('"'):
        raise BadExpression("Bad format string, missing '\"'")
    inside = _ESCAPE.sub(_escaped, text[1:-1])
    return list(_format_pieces(inside))


def _escaped(escape: "re.Match[str]") -> str:
    text = escape[1]
    if text[0] == "x" and len(text) > 1:
        return chr(int(text[1:], 16))
    if text[0] in "01234567":
        return chr(int(text, 8) & 0xFF)
    if text not in _ESCAPES:
        raise BadExpression(f"Unrecognized escape character \\{text} in format string.")
    return _ESCAPES[text]


def _format_pieces(text: str) -> Iterator[FormatPiece]:
    at = 0
    for found in _PIECE.finditer(text):
        if at < found.start():
            yield FormatPiece(text[at : found.start()])
        at = found.end()
        flags, width, precision, size, letter = found.groups()
        if letter is None or letter not in "diouxXcsfeEgGaAp%":
            raise BadExpression(f"Unrecognized format specifier '{letter or ''}' in printf")
        if letter == "%":
            yield FormatPiece("%")
            continue
        if (letter in "sp" and size) or (letter in "feEgGaA" and size not in (None, "l", "L")):
            raise BadExpression(f"Inappropriate modifiers to format specifier '{letter}' in printf")
        if len(width) > 4 or len(precision or "") > 4:
            raise BadExpression("a width or precision of the format is too large")
        digits = None if precision is None else int(precision or 0)
        yield FormatPiece("", letter, flags, int(width or 0), digits, size or "")
    if at < len(text):
        yield FormatPiece(text[at:])


def count_of(pieces: Sequence[FormatPiece]) -> int:
    """Return how many values a format has."""
    return sum(bool(it.letter) for it in pieces)


class FilledFormat:
    """Fills a format in. *known*: whether all of what was asked for last was."""

    def __init__(self, evaluator: Evaluator, pieces: Sequence[FormatPiece]) -> None:
        self._evaluator, self._pieces = evaluator, pieces
        self.known = True

    def text(self, values: Sequence[TypedValue | UnknownValue], moment: ExpressionMoment) -> str:
        """Return the text for the values. Raises BadExpression."""
        self.known = True
        given = iter(values)
        return "".join(self._filled_piece(it, next(given), moment) if it.letter else it.text for it in self._pieces)

    def _filled_piece(self, piece: FormatPiece, value: TypedValue | UnknownValue, moment: ExpressionMoment) -> str:
        try:
            if isinstance(value, UnknownValue):
                raise value
            return self._of_value(piece, value, moment)
        except UnknownValue as unknown:
            self.known = False
            return unknown.text

    def _of_value(self, piece: FormatPiece, value: TypedValue, moment: ExpressionMoment) -> str:
        if piece.letter == "s":
            return _padded(piece, self._string(piece, value, moment))
        if piece.letter in "feEgGaA":
            return _real(piece, self._real_number(value, moment))
        number = self._integer(value, moment)
        if piece.letter == "c":
            return _padded(piece, chr(number & 0xFF) if number & 0xFF else "")
        if piece.letter == "p":
            return _padded(piece, f"{number & self._evaluator.locations.mask:#x}" if number else "(nil)")
        return _integer_text(piece, number, _SIZES[piece.size] or self._evaluator.locations.xlen // 8)

    def _real_number(self, value: TypedValue, moment: ExpressionMoment) -> float:
        if is_float(value.type):
            return float(scalar_of(value, moment))
        return float(self._integer(value, moment))

    def _integer(self, value: TypedValue, moment: ExpressionMoment) -> int:
        if isinstance(stripped(value.type), Array):
            if value.address is None:
                raise BadExpression("Attempt to take address of value not located in memory.")
            return value.address
        return int(scalar_of(value, moment))

    def _string(self, piece: FormatPiece, value: TypedValue, moment: ExpressionMoment) -> str:
        kind = stripped(value.type)
        if isinstance(kind, Array):
            content = content_of(value, moment)
            data = bytes(it for it in content[: content.index(0) if 0 in content else len(content)] if it is not None)
            if None in content[: len(data) + 1]:
                raise UnknownValue
            return data.decode("latin-1")
        if not isinstance(kind, Pointer):
            raise BadExpression("Value can't be converted to a string: %s takes a pointer or an array")
        address = int(scalar_of(value, moment)) & self._evaluator.locations.mask
        if not address:
            return "(null)"
        found = string_at(moment, address, _LONGEST)
        if found is None or (not found.ended and len(found.content) < _LONGEST):
            raise UnknownValue(f"{'' if found is None else found.content.decode('latin-1')}{UNAVAILABLE}")
        return found.content.decode("latin-1")


def _padded(piece: FormatPiece, text: str) -> str:
    if piece.letter == "s" and piece.precision is not None:
        text = text[: piece.precision]
    return text.ljust(piece.width) if "-" in piece.flags else text.rjust(piece.width)


def _real(piece: FormatPiece, number: float) -> str:
    if piece.letter in "aA":
        return _padded(piece, number.hex())
    flags = piece.flags.replace("'", "")
    precision = "" if piece.precision is None else f".{piece.precision}"
    return f"%{flags}{piece.width or ''}{precision}{piece.letter}" % number


def _integer_text(piece: FormatPiece, number: int, size: int) -> str:
    bits = 8 * size
    number &= (1 << bits) - 1
    letter = "d" if piece.letter in "di" else piece.letter
    if letter == "d" and number >> (bits - 1):
        number -= 1 << bits
    letter = "d" if letter == "u" else letter
    flags = piece.flags.replace("'", "")
    precision = "" if piece.precision is None else f".{piece.precision}"
    if letter == "o" and "#" in flags:
        flags, text = flags.replace("#", ""), f"0{number:o}" if number else "0"
        return text.ljust(piece.width) if "-" in flags else text.rjust(piece.width)
    if letter in "xX" and not number:
        flags = flags.replace("#", "")
    return f"%{flags}{piece.width or ''}{precision}{letter}" % number
