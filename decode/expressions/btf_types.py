"""The types of values, read from the BTF of a Linux kernel (`decode.program.btf`).

Source: Documentation/bpf/btf.rst, section 2.2.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.types import (
    BOOL,
    CHAR,
    FLOAT,
    NOTHING,
    SIGNED,
    UNSIGNED,
    UNSIGNED_CHAR,
    Array,
    BaseType,
    Enum,
    FunctionType,
    MemberField,
    Named,
    Pointer,
    Struct,
    ValueType,
)
from rvtrace_gdb.decode.program import btf
from rvtrace_gdb.decode.program.btf import BadBtf, Btf, BtfType

_QUALIFIERS = {btf.CONST: "const", btf.VOLATILE: "volatile"}
_PASSED_OVER = (btf.RESTRICT, btf.TYPE_TAG, btf.DECL_TAG, btf.VAR, btf.FUNC)
_AGGREGATES = {"struct": (btf.STRUCT,), "union": (btf.UNION,), "enum": (btf.ENUM, btf.ENUM64)}
_PLAIN = (btf.TYPEDEF, btf.INT, btf.FLOAT)
_IS_SIGNED, _IS_CHAR, _IS_BOOL = 1, 2, 4
_DEEPEST = 64
"""Types of types: deeper ones are a circle, in damaged data."""


class BtfTypes:
    """The types of a kernel. *width*: bytes of an address. Methods raise UnreadableType for damaged data."""

    def __init__(self, source: Btf, width: int) -> None:
        self._source, self._width = source, width
        self._types: dict[int, ValueType] = {}
        self._depth = 0

    def named(self, name: str) -> ValueType | None:
        """Return a type: "struct tag", "pid_t"; None: there is none."""
        first, _, tag = name.partition(" ")
        is_tagged = bool(tag) and first in _AGGREGATES
        return self._first_named(tag if is_tagged else name, _AGGREGATES[first] if is_tagged else _PLAIN)

    def structure(self, name: str) -> ValueType | None:
        """Return the structure or union with a tag, None: there is none."""
        return self._first_named(name, (btf.STRUCT, btf.UNION))

    def _first_named(self, name: str, kinds: Sequence[int]) -> ValueType | None:
        number = self._source.named(name, kinds)
        try:
            return None if number is None else self._numbered(number)
        except BadBtf as error:
            raise UnreadableType(str(error)) from None

    def _numbered(self, number: int) -> ValueType:
        """Return the type with a number."""
        if not number:
            return NOTHING
        if number not in self._types:
            if self._depth > _DEEPEST:
                raise BadBtf(0, f"the type with the number {number} contains itself")
            self._depth += 1
            try:
                self._types[number] = self._new_type(self._source.type(number))
            finally:
                self._depth -= 1
        return self._types[number]

    def _new_type(self, it: BtfType) -> ValueType:
        if it.kind in (btf.INT, btf.FLOAT):
            return _number(it)
        if it.kind == btf.PTR:
            return Pointer(self._numbered(it.size), self._width)
        if it.kind == btf.ARRAY:
            element, _, count = it.parts[0]
            return Array(self._numbered(element), count)
        if it.kind in (btf.STRUCT, btf.UNION, btf.FWD):
            return self._aggregate(it)
        if it.kind in (btf.ENUM, btf.ENUM64):
            values = [(self._source.text(part[0]), _value(it, part)) for part in it.parts]
            return Enum(it.name, it.size, values, tagged=True)
        if it.kind == btf.TYPEDEF:
            return Named(it.name, self._numbered(it.size))
        if it.kind in _QUALIFIERS:
            return Named("", self._numbered(it.size), _QUALIFIERS[it.kind])
        if it.kind in _PASSED_OVER:
            return self._numbered(it.size)
        parameters = (number for _, number in it.parts if number) if it.kind == btf.FUNC_PROTO else ()
        return FunctionType(self._numbered(it.size), tuple(map(self._numbered, parameters)))

    def _aggregate(self, it: BtfType) -> Struct:
        """Return a structure or union, or the name of one alone: its kind is then in the flag."""
        is_union = it.flag if it.kind == btf.FWD else it.kind == btf.UNION
        size = 0 if it.kind == btf.FWD else it.size
        read = partial(self._read_members, it)
        return Struct(it.name, size, "union" if is_union else "struct", read, is_union=is_union)

    def _read_members(self, it: BtfType) -> list[MemberField]:
        try:
            return list(self._members(it))
        except BadBtf as error:
            raise UnreadableType(str(error)) from None

    def _members(self, it: BtfType) -> Iterator[MemberField]:
        for name, number, place in it.parts:
            bits, offset = (place >> 24, place & 0xFFFFFF) if it.flag else (0, place)
            field = (offset % 8, bits) if bits else None
            yield MemberField(self._source.text(name), self._numbered(number), offset // 8, field)


def _number(it: BtfType) -> BaseType:
    if it.kind == btf.FLOAT:
        return BaseType(it.name, it.size, FLOAT)
    encoding = it.parts[0][0] >> 24
    if encoding & _IS_BOOL:
        return BaseType(it.name, it.size, BOOL)
    is_character = bool(encoding & _IS_CHAR) or it.name in ("char", "signed char", "unsigned char")
    if it.size == 1 and is_character:
        return BaseType(it.name, 1, UNSIGNED_CHAR if it.name in ("char", "unsigned char") else CHAR)
    return BaseType(it.name, it.size, SIGNED if encoding & _IS_SIGNED else UNSIGNED)


def _value(it: BtfType, part: tuple[int, ...]) -> int:
    """Return the value of a name of an enumeration: with `flag`, it may be negative."""
    bits = 32 * (len(part) - 1)
    value = part[1] | (part[2] << 32 if bits == 64 else 0)
    return value - (1 << bits) if it.flag and value >> bits - 1 else value
