"""The members and elements that a value consists of, by the bytes of the value."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.types import Array, MemberField, Struct, ValueType, size_of, stripped


class ValuePart(NamedTuple):
    """A part of a value: ".gain[3]" behind the name of the whole, its type, and its first byte."""

    suffix: str
    type: ValueType
    offset: int


def innermost_part(kind: ValueType, offset: int, size: int) -> ValuePart:
    """Return the innermost member or element that has so many bytes from *offset* on; the whole, if none has."""
    part = ValuePart("", kind, 0)
    while (inner := _inner_part(part, offset, size)) is not None:
        part = inner
    return part


def _inner_part(part: ValuePart, offset: int, size: int) -> ValuePart | None:
    kind, offset = stripped(part.type), offset - part.offset
    if isinstance(kind, Array) and size_of(kind.target):
        number, inside = divmod(offset, size_of(kind.target))
        if inside + size <= size_of(kind.target):
            name = f"{part.suffix}[{number + kind.lowest}]"
            return ValuePart(name, kind.target, part.offset + offset - inside)
    if isinstance(kind, Struct):
        for it in _members(kind):
            inside = offset - it.offset
            if it.name and it.bits is None and inside >= 0 and inside + size <= size_of(it.type):
                return ValuePart(f"{part.suffix}.{it.name}", it.type, part.offset + it.offset)
    return None


def _members(kind: Struct) -> Sequence[MemberField]:
    """Return the members of a structure that are understood."""
    try:
        return kind.members
    except UnreadableType:
        return ()
