"""The types of a program's values, and their names as gdb has them."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

SIGNED, UNSIGNED, CHAR, UNSIGNED_CHAR, BOOL, FLOAT, VOID = "int", "uint", "char", "uchar", "bool", "float", "void"


class BaseType(NamedTuple):
    """A number, a character, a truth value, or nothing (`VOID`). *kind*: one of the constants above."""

    name: str
    size: int
    kind: str


class Pointer(NamedTuple):
    """A pointer, or a reference (*sign*: "*", "&", "&&")."""

    target: "ValueType"
    size: int
    sign: str = "*"


class Array(NamedTuple):
    """*length* elements, None if that is not known; the first one has the index *lowest*."""

    target: "ValueType"
    length: int | None
    lowest: int = 0


class MemberField(NamedTuple):
    """A member. *bits*: (the number of the lowest bit behind *offset*, how many) of a bit-field. *is_base*: of a class.
    """

    name: str
    type: "ValueType"
    offset: int
    bits: tuple[int, int] | None = None
    is_base: bool = False


class Struct:
    """A structure, class or union. Its members are read when they are asked for."""

    def __init__(
        self, name: str, size: int, tag: str, members: Callable[[], Sequence[MemberField]], *, is_union: bool = False,
        is_by_reference: bool = False,
    ) -> None:  # fmt: skip
        """*is_by_reference*: such a value is passed and returned in memory, whatever its size."""
        self.name, self.size, self.tag, self._read = name, size, tag, members
        self.is_union, self.is_by_reference = is_union, is_by_reference

    @cached_property
    def members(self) -> Sequence[MemberField]:
        return list(self._read())


class Enum:
    """An enumeration. *values*: its names with their values."""

    def __init__(self, name: str, size: int, values: Sequence[tuple[str, int]], *, tagged: bool) -> None:
        self.name, self.size, self.values, self.tagged = name, size, values, tagged

    @cached_property
    def is_signed(self) -> bool:
        return any(value < 0 for _, value in self.values)

    @cached_property
    def is_flags(self) -> bool:
        """Whether values may be several names: each has one run of bits of its own (gdb: "flag enum")."""
        seen = 0
        for _, value in self.values:
            if value < 0:
                return False
            runs = bin(value).strip("0b").count("01") if value else 0
            if runs or value & seen:
                return False
            seen |= value
        return True


class FunctionType(NamedTuple):
    """A function: what pointers to functions point at."""

    result: "ValueType"
    parameters: tuple["ValueType", ...]
    is_prototyped: bool = True


class Named(NamedTuple):
    """Another name of a type, or with *qualifier* the type as "const" or "volatile"."""

    name: str
    target: "ValueType"
    qualifier: str = ""


ValueType: TypeAlias = BaseType | Pointer | Array | Struct | Enum | FunctionType | Named

NOTHING = BaseType("void", 1, VOID)


def stripped(kind: ValueType) -> ValueType:
    """Return what a type is behind its names and qualifiers."""
    while isinstance(kind, Named):
        kind = kind.target
    return kind


def size_of(kind: ValueType) -> int:
    """Return the bytes of a value."""
    kind = stripped(kind)
    if isinstance(kind, Array):
        return size_of(kind.target) * (kind.length or 0)
    return 1 if isinstance(kind, (FunctionType, Named)) else kind.size


def is_scalar(kind: ValueType) -> bool:
    """Return whether values are numbers: integers, pointers, enumerations, floating point."""
    kind = stripped(kind)
    return isinstance(kind, (Enum, Pointer)) or (isinstance(kind, BaseType) and kind.kind != VOID)


def is_float(kind: ValueType) -> bool:
    kind = stripped(kind)
    return isinstance(kind, BaseType) and kind.kind == FLOAT


def is_signed(kind: ValueType) -> bool:
    """Return whether the numbers of a type may be negative."""
    kind = stripped(kind)
    return (isinstance(kind, BaseType) and kind.kind in (SIGNED, CHAR)) or (isinstance(kind, Enum) and kind.is_signed)


def is_character(kind: ValueType) -> bool:
    kind = stripped(kind)
    return isinstance(kind, BaseType) and kind.kind in (CHAR, UNSIGNED_CHAR) and kind.size == 1


def type_name(kind: ValueType, inner: str = "") -> str:
    """Return the name of a type as gdb prints it. *inner*: what is between it and what follows: `int (*)[4]`."""
    if isinstance(kind, Pointer):
        is_around = isinstance(_unqualified(kind.target), (Array, FunctionType))
        return type_name(kind.target, f"({kind.sign}{inner})" if is_around else f"{kind.sign}{inner}")
    if isinstance(kind, Array):
        length = "" if kind.length is None else str(kind.length)
        return type_name(kind.target, f"{inner}[{length}]")
    if isinstance(kind, FunctionType):
        given = ", ".join(map(type_name, kind.parameters)) or ("void" if kind.is_prototyped else "")
        return type_name(kind.result, f"{inner}({given})")
    if isinstance(kind, Named) and kind.qualifier:
        if isinstance(_unqualified(kind.target), Pointer):
            return type_name(kind.target, f" {kind.qualifier}{' ' if inner[:1].isalnum() else ''}{inner}")
        return f"{kind.qualifier} {type_name(kind.target, inner)}"
    if isinstance(kind, Struct):
        name = f"{kind.tag} {kind.name or '{...}'}".strip() if kind.tag else kind.name or "{...}"
    elif isinstance(kind, Enum):
        name = f"enum {kind.name or '{...}'}" if kind.tagged else kind.name or "{...}"
    else:
        name = kind.name
    return f"{name} {inner}" if inner and not inner.startswith(" ") else f"{name}{inner}"


def _unqualified(kind: ValueType) -> ValueType:
    while isinstance(kind, Named) and kind.qualifier:
        kind = kind.target
    return kind
