"""The types of values, read from the BTF of a Linux kernel (`decode.program.linux.btf`).

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
from rvtrace_gdb.decode.program.linux import btf
from rvtrace_gdb.decode.program.linux.btf import BadBtf, Btf, BtfType

_QUALIFIERS = {btf.CONST: "const", btf.VOLATILE: "volatile"}
_PASSED_OVER = (btf.RESTRICT, btf.TYPE_TAG, btf.DECL_TAG, btf.VAR, btf.FUNC)
_AGGREGATES = {"struct": (btf.STRUCT,), "union": (btf.UNION,), "enum": (btf.ENUM, btf.ENUM64)}
_PLAIN = (btf.TYPEDEF, btf.INT, btf.FLOAT)
_IS_SIGNED, _IS_CHAR, _IS_BOOL = 1, 2, 4
_DEEPEST = 64
"""Types of types: deeper ones are a circle, in damaged data."""


class BtfTypes:
    """The types of a kernel. *width*: bytes of an address. Methods raise UnreadableType for damaged data."""

    def __init__(self, btf_data: Btf, width: int) -> None:
        self._btf, self._width = btf_data, width
        self._types: dict[int, ValueType] = {}
        self._depth = 0

    def kernel_type(self, name: str) -> ValueType | None:
        """Return a type: "struct tag", "pid_t"; None: there is none."""
        first, _, tag = name.partition(" ")
        is_tagged = bool(tag) and first in _AGGREGATES
        return self._first_named(tag if is_tagged else name, _AGGREGATES[first] if is_tagged else _PLAIN)

    def structure(self, name: str) -> ValueType | None:
        """Return the structure or union with a tag, None: there is none."""
        return self._first_named(name, (btf.STRUCT, btf.UNION))

    def _first_named(self, name: str, kinds: Sequence[int]) -> ValueType | None:
        number = self._btf.first_named(name, kinds)
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
                self._types[number] = self._new_type(self._btf.type(number))
            finally:
                self._depth -= 1
        return self._types[number]

    def _new_type(self, source: BtfType) -> ValueType:
        if source.kind in (btf.INT, btf.FLOAT):
            return _base_type(source)
        if source.kind == btf.PTR:
            return Pointer(self._numbered(source.size), self._width)
        if source.kind == btf.ARRAY:
            element, _, count = source.parts[0]
            return Array(self._numbered(element), count)
        if source.kind in (btf.STRUCT, btf.UNION, btf.FWD):
            return self._aggregate(source)
        if source.kind in (btf.ENUM, btf.ENUM64):
            values = [(self._btf.text(part[0]), _enumerator_value(source, part)) for part in source.parts]
            return Enum(source.name, source.size, values, tagged=True)
        if source.kind == btf.TYPEDEF:
            return Named(source.name, self._numbered(source.size))
        if source.kind in _QUALIFIERS:
            return Named("", self._numbered(source.size), _QUALIFIERS[source.kind])
        if source.kind in _PASSED_OVER:
            return self._numbered(source.size)
        parameters = (number for _, number in source.parts if number) if source.kind == btf.FUNC_PROTO else ()
        return FunctionType(self._numbered(source.size), tuple(map(self._numbered, parameters)))

    def _aggregate(self, source: BtfType) -> Struct:
        """Return a structure or union, or the name of one alone: its kind is then in the flag."""
        is_union = source.flag if source.kind == btf.FWD else source.kind == btf.UNION
        size = 0 if source.kind == btf.FWD else source.size
        read = partial(self._read_members, source)
        return Struct(source.name, size, "union" if is_union else "struct", read, is_union=is_union)

    def _read_members(self, source: BtfType) -> list[MemberField]:
        try:
            return list(self._members(source))
        except BadBtf as error:
            raise UnreadableType(str(error)) from None

    def _members(self, source: BtfType) -> Iterator[MemberField]:
        for name, number, place in source.parts:
            bits, offset = (place >> 24, place & 0xFFFFFF) if source.flag else (0, place)
            field = (offset % 8, bits) if bits else None
            yield MemberField(self._btf.text(name), self._numbered(number), offset // 8, field)


def _base_type(source: BtfType) -> BaseType:
    if source.kind == btf.FLOAT:
        return BaseType(source.name, source.size, FLOAT)
    encoding = source.parts[0][0] >> 24
    if encoding & _IS_BOOL:
        return BaseType(source.name, source.size, BOOL)
    is_character = bool(encoding & _IS_CHAR) or source.name in ("char", "signed char", "unsigned char")
    if source.size == 1 and is_character:
        return BaseType(source.name, 1, UNSIGNED_CHAR if source.name in ("char", "unsigned char") else CHAR)
    return BaseType(source.name, source.size, SIGNED if encoding & _IS_SIGNED else UNSIGNED)


def _enumerator_value(source: BtfType, part: tuple[int, ...]) -> int:
    """Return the value of a name of an enumeration: with `flag`, it may be negative."""
    bits = 32 * (len(part) - 1)
    value = part[1] | (part[2] << 32 if bits == 64 else 0)
    return value - (1 << bits) if source.flag and value >> bits - 1 else value
