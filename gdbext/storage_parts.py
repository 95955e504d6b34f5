"""The elements of an array, and the members of a structure, each as a place in memory of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext.expressions import Storage

_PLAIN_NAME = re.compile(r"[\w.\[\]>-]+")


class _MemberPlace(NamedTuple):
    """A member: ".gain" behind the name of the storage, its type, and its first byte. *bits*: as in `Storage`."""

    suffix: str
    kind: gdb.Type
    offset: int
    bits: tuple[int, int] | None = None


def parts_of(storage: Storage, most: int) -> tuple[list[Storage], int]:
    """Return the first elements or members of what is in memory, *most* of them, and how many more there are.

    Members of base classes, and of what has no name, are those of the structure. A union, whose members are in the same
    bytes, has none.
    """
    if storage.kind is None or storage.where is None or storage.bits is not None:
        return [], 0
    parts, more = _parts_of_type(storage.kind.strip_typedefs(), most)
    return [_storage(storage, storage.where[0], it) for it in parts], more


def name_of_part(storage: Storage, suffix: str) -> str:
    """Return the name of a part of what an expression means."""
    is_plain = not suffix or storage.is_part or _PLAIN_NAME.fullmatch(storage.text)
    return f"{storage.text}{suffix}" if is_plain else f"({storage.text}){suffix}"


def _storage(storage: Storage, address: int, part: _MemberPlace) -> Storage:
    size = part.kind.sizeof if part.bits is None else (sum(part.bits) + 7) // 8
    kind = part.kind if part.bits is None else None
    text, where = name_of_part(storage, part.suffix), [address + part.offset, size]
    return Storage(text, where=where, kind=kind, at=storage.at, bits=part.bits, is_part=True)


def _parts_of_type(kind: gdb.Type, most: int) -> tuple[list[_MemberPlace], int]:
    if kind.code == gdb.TYPE_CODE_ARRAY and kind.target().sizeof:
        lowest, highest = kind.range()
        count, size = max(highest - lowest + 1, 0), kind.target().sizeof
        elements = range(min(count, most))
        found = [_MemberPlace(f"[{lowest + number}]", kind.target(), number * size) for number in elements]
        return found, count - len(found)
    if kind.code == gdb.TYPE_CODE_STRUCT:
        members = list(_members(kind, 0))
        return members[:most], len(members[most:])
    return [], 0


def _members(kind: gdb.Type, begin: int) -> Iterator[_MemberPlace]:
    for field in kind.fields():
        if not hasattr(field, "bitpos") or field.type is None:  # a static member
            continue
        inner, (first, shift) = field.type.strip_typedefs(), divmod(field.bitpos or 0, 8)
        is_struct = inner.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
        if is_struct and (field.is_base_class or not field.name):
            yield from _members(inner, begin + first)
        elif field.name and field.bitsize:
            yield _MemberPlace(f".{field.name}", field.type, begin + first, (shift, field.bitsize))
        elif field.name and field.type.sizeof:
            yield _MemberPlace(f".{field.name}", field.type, begin + first)
