"""Values as gdb prints them (valprint.c, c-valprint.c, generic_printstr), with what is not known in its place.

`print elements` and `repeats` have gdb's defaults: 200 and 10.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.evaluator import Evaluator
from rvtrace_gdb.decode.expressions.locations import UNAVAILABLE, ExpressionMoment, UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression
from rvtrace_gdb.decode.expressions.types import (
    BOOL,
    FLOAT,
    VOID,
    Array,
    BaseType,
    Enum,
    FunctionType,
    Pointer,
    Struct,
    ValueType,
    is_character,
    is_float,
    is_signed,
    size_of,
    stripped,
    type_name,
)
from rvtrace_gdb.decode.expressions.values import TypedValue, content_of, known_content, scalar_of
from rvtrace_gdb.decode.program.names.unit_functions import RUST
from rvtrace_gdb.support.text import printable

ELEMENTS, REPEATS = 200, 10
_NAMED_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 27: "\\033", 92: "\\\\"}
FORMATS = "xduotcafsz"
"""The letters of `/x`."""
_DEEPEST = 20


class Formatter:
    """Makes texts of values. *letter*: of `/x`, "" for none."""

    def __init__(self, evaluator: Evaluator, letter: str = "") -> None:
        self._evaluator, self._letter = evaluator, letter
        self._moment: ExpressionMoment
        self._known = True

    def prints_plainly(self, kind: ValueType) -> bool:
        """Return whether the texts of a type are those of integers."""
        behind = stripped(kind)
        is_number = isinstance(behind, BaseType) and behind.kind not in (FLOAT, BOOL, VOID)
        return is_number and not is_character(behind) and not self._letter

    def text(
        self, value: TypedValue, moment: ExpressionMoment, *, is_member: bool = False
    ) -> tuple[str, bool]:
        """Return the text of a value, and whether all of it is known. *is_member*: without its type, as gdb prints it
        within a structure. Raises BadExpression: it cannot be printed.
        """
        self._moment, self._known = moment, True
        scope = self._evaluator.program.scope_at(moment.pc)
        language = self._evaluator.language(scope)
        kind = stripped(value.type)
        if language == RUST and isinstance(kind, (Struct, Array, Enum, Pointer)):
            raise BadExpression("values of Rust that are no numbers are printed by gdb alone")
        try:
            text = self._guarded(value) if is_member else self._top(value, kind, language)
        except UnreadableType as error:
            raise BadExpression(f"{error}: a type that is not understood here") from None
        if value.reference is not None and value.address is not None and not self._letter:
            text = f"({type_name(value.reference)}) @{value.address:#x}: {text}"
        return printable(text), self._known  # names of the program are in it, which may hold anything

    def _top(self, value: TypedValue, kind: ValueType, language: int) -> str:
        if not isinstance(kind, Pointer) or self._letter not in ("", "s") or value.bits is not None:
            return self._guarded(value)
        text = self._guarded(value)
        target = kind.target
        while not isinstance(target, (BaseType, Pointer, Array, Struct, Enum, FunctionType)) and target.qualifier:
            target = target.target
        is_plain = isinstance(target, BaseType) and target.name == "char" and value.type is kind
        if is_plain or text == UNAVAILABLE:
            return text
        return f"({type_name(value.type)}) {text}"

    def _guarded(self, value: TypedValue, depth: int = 0) -> str:
        try:
            return self._inner(value, depth)
        except UnknownValue as unknown:
            self._known = False
            return unknown.text

    def _inner(self, value: TypedValue, depth: int) -> str:
        kind = self._evaluator.complete(stripped(value.type))
        if depth > _DEEPEST:
            return "{...}"
        if isinstance(kind, Struct):
            return self._struct(value, kind, depth)
        if isinstance(kind, Array):
            return self._array(value, kind, depth)
        if isinstance(kind, FunctionType) and self._letter == "a":
            raise BadExpression("Value can't be converted to integer.")
        if isinstance(kind, FunctionType):
            return f"{{{type_name(kind)}}} {self._address(value.address or 0)}"
        if isinstance(kind, BaseType) and kind.kind == VOID:
            return "void"
        if isinstance(kind, Pointer) and kind.sign != "*":
            whole = int(scalar_of(value, self._moment)) & self._mask
            return f"@{whole:#x}: {self._guarded(TypedValue(kind.target, whole), depth + 1)}"
        if self._letter and self._letter != "s":
            return self.lettered(value, self._letter)
        if isinstance(kind, Pointer):
            return self._pointer(int(scalar_of(value, self._moment)) & self._mask, kind)
        return self._scalar(value, kind)

    @property
    def _mask(self) -> int:
        return self._evaluator.locations.mask

    def _scalar(self, value: TypedValue, kind: ValueType) -> str:
        number = scalar_of(value, self._moment)
        if isinstance(kind, Enum):
            return _enum_text(int(number), kind)
        assert isinstance(kind, BaseType)
        if kind.kind == FLOAT:
            return float_text(float(number), kind.size, known_content(value, self._moment))
        if kind.kind == BOOL:
            return {0: "false", 1: "true"}.get(int(number), str(number))
        if is_character(kind):
            return f"{number} '{_escaped(int(number) & 0xFF, chr(39))}'"
        return str(number)

    # -- pointers

    def _pointer(self, address: int, kind: Pointer) -> str:
        target = self._evaluator.complete(stripped(kind.target))
        if isinstance(target, FunctionType):
            return self._address(address)
        text = self._address(address)
        if is_character(target) and address:
            text += f" {self._text_at(address)}"
        return text

    def _address(self, address: int) -> str:
        symbol = self._evaluator.image.symbol(address)
        if symbol is None:
            return f"{address:#x}"
        name, offset = symbol
        return f"{address:#x} <{name}{f'+{offset}' if offset else ''}>"

    def _text_at(self, address: int) -> str:
        """Return the string at an address, as far as it is known."""
        found = string_at(self._moment, address, ELEMENTS + 1)
        if found is None or (not found.ended and len(found.content) <= ELEMENTS):
            self._known = False
            if found is None or not found.content:
                return UNAVAILABLE
            return f"{quoted(found.content)}{UNAVAILABLE}"
        cut = not found.ended
        return quoted(found.content[:ELEMENTS]) + ("..." if cut else "")

    # -- what consists of others

    def _struct(self, value: TypedValue, kind: Struct, depth: int) -> str:
        if value.content is None:
            value = value._replace(content=content_of(value, self._moment))  # in one piece
        parts = []
        members = sorted(kind.members, key=lambda it: not it.is_base)
        for it in members:
            text = self._guarded(self._evaluator.part(value, it, self._moment), depth + 1)
            if it.is_base:
                parts.append(f"<{type_name(it.type)}> = {text}")
            else:
                parts.append(f"{it.name} = {text}" if it.name else text)
        empty = "{<No data fields>}" if not parts else ""
        bases = [it for it in members if it.is_base]
        if bases and len(bases) == len(parts):
            return f"{{{', '.join(parts)}, <No data fields>}}"
        return empty or f"{{{', '.join(parts)}}}"

    def _array(self, value: TypedValue, kind: Array, depth: int) -> str:
        target = stripped(kind.target)
        count = kind.length or 0
        if value.content is None:
            shown = min(count, ELEMENTS if not isinstance(target, (Array, Struct)) else count)
            shown = count if is_character(target) else shown
            whole = value._replace(type=Array(kind.target, shown))
            value = value._replace(content=content_of(whole, self._moment))
        if is_character(target) and self._letter in ("", "s"):
            return self._characters(value)
        if not count:
            return "{}" if kind.length == 0 else f"{value.address or 0:#x}"
        texts = (self._guarded(self._evaluator.element(value, at), depth + 1) for at in range(count))
        return f"{{{', '.join(_elided(texts))}}}"

    def _characters(self, value: TypedValue) -> str:
        content = list(value.content or ())
        if None in content:
            self._known = False
            known = bytes(it for it in content[: content.index(None)] if it is not None)
            return f"{quoted(known)}{UNAVAILABLE}" if known else UNAVAILABLE
        data = bytes(content)  # type: ignore[arg-type] # no None is in it
        shown = data[:ELEMENTS]
        if len(data) <= ELEMENTS and shown.endswith(b"\0"):
            shown = shown[:-1]
        return quoted(shown) + ("..." if len(data) > ELEMENTS else "")

    # -- /x

    def lettered(self, value: TypedValue, letter: str) -> str:
        """Return a scalar as `print /x` does."""
        kind = stripped(value.type)
        size = size_of(kind)
        if is_float(kind):
            number = scalar_of(value, self._moment)
            if letter == "f":
                return float_text(float(number), size, known_content(value, self._moment))
            whole, bits = int.from_bytes(known_content(value, self._moment), "little"), 8 * size
            if letter not in "xtoza":
                whole = int(number)
                return str(whole)
        else:
            bits = 8 * size if value.bits is None else value.bits[1]
            whole = int(scalar_of(value, self._moment)) & (1 << bits) - 1
        if letter == "f":
            return self._as_float(value, size)
        return self._in_letter(whole, letter, bits, size, signed=is_signed(kind))

    def _as_float(self, value: TypedValue, size: int) -> str:
        """Return the bits of an integer as a floating-point number, if there is one of that size."""
        if size not in (4, 8) or value.bits is not None:
            return str(scalar_of(value, self._moment))
        kind = BaseType("", size, FLOAT)
        return self._scalar(TypedValue(kind, content=known_content(value, self._moment)), kind)

    def _in_letter(self, number: int, letter: str, bits: int, size: int, *, signed: bool) -> str:
        negative = number - (1 << bits) if number >> (bits - 1) else number
        if letter == "c":
            low = number & 0xFF
            return f"{low - 256 if signed and low > 127 else low} '{_escaped(low, chr(39))}'"
        if letter == "a":
            return self._address(number)
        texts = {
            "x": f"{number:#x}", "d": str(negative), "u": str(number), "o": f"0{number:o}" if number else "0",
            "t": f"{number:b}", "z": f"0x{number:0{2 * size}x}",
        }  # fmt: skip
        return texts[letter]


class FoundString:
    """The characters up to the first 0. *ended*: it was there; otherwise they end at what is not known, or too long."""

    def __init__(self, content: bytes, *, ended: bool) -> None:
        self.content, self.ended = content, ended


def string_at(moment: ExpressionMoment, address: int, most: int) -> FoundString | None:
    """Return the string at an address, at most so many characters; None: its first one is not known."""
    found = bytearray()
    while len(found) < most:
        piece = moment.memory(address + len(found), min(8, most - len(found)))
        for byte in piece:
            if byte is None:
                return FoundString(bytes(found), ended=False) if found else None
            if not byte:
                return FoundString(bytes(found), ended=True)
            found.append(byte)
    return FoundString(bytes(found), ended=False)


def _elided(elements: Iterator[str]) -> Iterator[str]:
    shown = 0
    for text, same in groupby(elements):
        if shown >= ELEMENTS:
            yield "..."
            return
        times = sum(1 for _ in same)
        if times >= REPEATS:
            yield f"{text} <repeats {times} times>"
            shown += REPEATS
            continue
        fitting = min(times, ELEMENTS - shown)
        yield from [text] * fitting
        shown += fitting
        if fitting < times:
            yield "..."
            return


def quoted(content: bytes) -> str:
    """Return characters as gdb prints strings: "abc", '\\000' <repeats 12 times>."""
    if not content:
        return '""'
    parts: list[str] = []
    inside = ""
    for byte, same in groupby(content):
        times = sum(1 for _ in same)
        if times > REPEATS:
            if inside:
                parts.append(f'"{inside}"')
                inside = ""
            parts.append(f"'{_escaped(byte, chr(39))}' <repeats {times} times>")
        else:
            inside += _escaped(byte, '"') * times
    return ", ".join([*parts, *([f'"{inside}"'] if inside else [])])


def _escaped(byte: int, quote: str) -> str:
    if byte in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[byte]
    if chr(byte) == quote:
        return f"\\{quote}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def float_text(number: float, size: int, content: Sequence[int]) -> str:
    """Return a floating-point number as gdb prints it."""
    if number != number or abs(number) == float("inf"):
        whole = int.from_bytes(bytes(content[:size]), "little")
        sign = "-" if whole >> (8 * size - 1) else ""
        if abs(number) == float("inf"):
            return f"{sign}inf"
        fraction = {2: 10, 4: 23, 8: 52}.get(size, 112)
        return f"{sign}nan(0x{whole & (1 << fraction) - 1:x})"
    return f"{number:.{9 if size == 4 else 17 if size == 8 else 5 if size == 2 else 36}g}"


def _enum_text(number: int, kind: Enum) -> str:
    for name, value in kind.values:
        if value == number:
            return name
    if not kind.is_flags:
        return str(number)
    if not number:
        return "0"
    names, rest = [], number
    for name, value in kind.values:
        if value & rest:
            names.append(name)
            rest &= ~value
    if not names:
        return f"(unknown: {number:#x})"
    return f"({' | '.join([*names, *([f'unknown: {rest:#x}'] if rest else [])])})"
