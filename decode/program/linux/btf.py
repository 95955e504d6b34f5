"""BTF: the types of a Linux kernel in short, which it has in its memory, from `__start_BTF` to `__stop_BTF`, and gives
as /sys/kernel/btf/vmlinux, also where its file came without debug information.

A header, then descriptions of types, which refer to each other by their numbers (0: void, then in their order), and
texts. Source: the kernel's Documentation/bpf/btf.rst, sections 2 and 3, and include/uapi/linux/btf.h.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.support.errors import RvtraceError

BTF_BEGIN, BTF_END = "__start_BTF", "__stop_BTF"
"""The symbols of a kernel around it."""
_MAGIC, _HEADER = 0xEB9F, struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO = range(1, 14)
VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(14, 20)
_FOLLOW = {INT: 4, ARRAY: 12, VAR: 4, DECL_TAG: 4}
"""Bytes behind a description, by its kind."""
_FOLLOW_EACH = {STRUCT: 12, UNION: 12, ENUM: 8, FUNC_PROTO: 8, DATASEC: 12, ENUM64: 12}
"""The same, for each of its `vlen` parts."""
_MOST = 1 << 26
"""Bytes: more are none."""


class BadBtf(RvtraceError):
    """Bytes that are no BTF, or cut, or damaged. *offset*: in bytes, where that shows."""

    def __init__(self, offset: int, why: str) -> None:
        self.offset = offset
        super().__init__(f"the kernel's BTF cannot be read: {why}, at byte 0x{offset:x}")


class BtfType(NamedTuple):
    """A description. *size*: in bytes, or the number of another type, as the kind has it; *parts*: what follows it, as
    words of 32 bits, in as many tuples as it has parts.
    """

    name: str
    kind: int
    flag: bool
    size: int
    parts: Sequence[tuple[int, ...]]


class Btf:
    """The types in *data*. Raises BadBtf, as the methods do."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEADER.size:
            raise BadBtf(len(data), "it is cut in its header")
        magic, _, _, header, type_at, type_size, text_at, text_size = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise BadBtf(0, f"it begins with 0x{magic:04x} instead of 0x{_MAGIC:04x}")
        self._data, self._types_begin = data, header + type_at
        self._texts, self._texts_end = header + text_at, header + text_at + text_size
        if max(self._types_begin + type_size, self._texts_end) > len(data):
            raise BadBtf(len(data), "it is cut")
        self._offsets = list(self._find_types(self._types_begin + type_size))

    def _find_types(self, end: int) -> Iterator[int]:
        data, at = self._data, self._types_begin
        yield at  # number 0 is void, which has no description
        while at < end:
            if at + _TYPE.size > end:
                raise BadBtf(at, "a type is cut")
            yield at
            info = int.from_bytes(data[at + 4 : at + 8], "little")
            kind = info >> 24 & 31
            if not INT <= kind <= ENUM64:
                raise BadBtf(at, f"there is a type of the kind {kind}, which nobody knows")
            each = _FOLLOW_EACH.get(kind)
            at += _TYPE.size + (_FOLLOW.get(kind, 0) if each is None else each * (info & 0xFFFF))
        if at != end:
            raise BadBtf(end, "a type is cut")

    def type(self, number: int) -> BtfType:
        """Return the description of a type."""
        if not 0 < number < len(self._offsets):
            raise BadBtf(self._types_begin, f"there is no type with the number {number}")
        at = self._offsets[number]
        name, info, size = _TYPE.unpack_from(self._data, at)
        kind, count, at = info >> 24 & 31, info & 0xFFFF, at + _TYPE.size
        each = _FOLLOW_EACH.get(kind)
        if each is None:
            each, count = _FOLLOW.get(kind, 0), 1 if kind in _FOLLOW else 0
        part = struct.Struct(f"<{each // 4}I")
        parts = list(part.iter_unpack(self._data[at : at + each * count])) if count else []
        return BtfType(self.text(name), kind, bool(info >> 31), size, parts)

    def text(self, offset: int) -> str:
        """Return a text of the section of texts."""
        begin = self._texts + offset
        end = self._data.find(b"\0", begin, self._texts_end)
        if end < 0:
            raise BadBtf(begin, "there is a name outside of the texts")
        return self._data[begin:end].decode("utf-8", "backslashreplace")

    def first_named(self, name: str, kinds: Sequence[int]) -> int | None:
        """Return the number of the first type of a name that is of some kinds, None: there is none."""
        wanted = self._data.find(b"\0" + name.encode() + b"\0", self._texts, self._texts_end) + 1 - self._texts
        if wanted <= 0:
            return None
        sought, data = wanted.to_bytes(4, "little"), self._data
        for number, at in enumerate(self._offsets):
            if number and data[at : at + 4] == sought and data[at + 7] & 31 in kinds:
                return number
        return None


def _btf_place(image: Image) -> range:
    """Return where the BTF of a kernel is in its memory; an empty range: it has none."""
    begin, end = (next((at for at, _ in image.symbols_named(name)), 0) for name in (BTF_BEGIN, BTF_END))
    return range(begin, end) if 0 < begin < end <= begin + _MOST else range(0)


def btf_remedy(image: Image) -> str:
    """Return what to do about a kernel whose types are not known."""
    place = _btf_place(image)
    if place:
        return (
            "the kernel has its types in memory, which was not supplied: give a copy of its /sys/kernel/btf/vmlinux"
            f" with --memory FILE@0x{place.start:x}"
        )
    return (
        "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF): give its vmlinux with debug information with --elf; Debian has"
        " it in the package linux-image-VERSION-dbg"
    )


def btf_of(image: Image) -> Btf | None:
    """Return the BTF that is in the memory of a kernel, if that is in the image or can be read from the target; None:
    the kernel has none, or that memory is not there. Raises BadBtf.
    """
    place = _btf_place(image)
    try:
        return Btf(image.read(place.start, len(place))) if place else None
    except CodeMissing:
        return None
