"""The members and elements that a value consists of, by the bytes of the value."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.types import Array, MemberField, Struct, ValueType, size_of, stripped


class ValuePart(NamedTuple):
    """A part of a value: ".gain[3]" behind the name of the whole, its type, and its first byte. *bits*: of a bit-field,
    its lowest bit in that byte, and how many it has.
    """

    suffix: str
    type: ValueType
    offset: int
    bits: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """How many bytes the part has, or is in."""
        return size_of(self.type) if self.bits is None else (sum(self.bits) + 7) // 8


def innermost_part(kind: ValueType, offset: int, size: int, *, into_unions: bool = True) -> ValuePart:
    """Return the innermost member or element that has so many bytes from *offset* on; the whole, if none has. Not
    *into_unions*: through which member of a union something was written is not known.
    """
    part = ValuePart("", kind, 0)
    while into_unions or not _is_union(part.type):
        inner = _inner_part(part, offset, size)
        if inner is None:
            break
        part = inner
    return part


def _is_union(kind: ValueType) -> bool:
    behind = stripped(kind)
    return isinstance(behind, Struct) and behind.is_union


def parts_of(kind: ValueType, most: int) -> tuple[list[ValuePart], int]:
    """Return the first elements of an array, or members of a structure, *most* of them, and how many more there are.
    Members of base classes, and of what has no name, are those of the structure. A union, whose members are in the same
    bytes, has none.
    """
    kind = stripped(kind)
    if isinstance(kind, Array) and size_of(kind.target):
        count, size = kind.length or 0, size_of(kind.target)
        elements = range(min(count, most))
        found = [ValuePart(f"[{kind.lowest + number}]", kind.target, number * size) for number in elements]
        return found, count - len(found)
    if isinstance(kind, Struct) and not kind.is_union:
        members = list(_named_members(kind, 0))
        return members[:most], len(members[most:])
    return [], 0


def _named_members(kind: Struct, begin: int) -> Iterator[ValuePart]:
    for it in _members(kind):
        inner, offset = stripped(it.type), begin + it.offset
        if isinstance(inner, Struct) and (it.is_base or not it.name):
            yield from _named_members(inner, offset)
        elif it.name and (it.bits is not None or size_of(it.type)):
            yield ValuePart(f".{it.name}", it.type, offset, it.bits)


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
