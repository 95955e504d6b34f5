"""Where a function's value is when it has returned.

Source: RISC-V ABIs Specification 1.0, 2.1 "Integer Calling Convention", 2.2 "Hardware Floating-point Calling
Convention"; the e_flags: 8.1 "File Header".
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.types import (
    FLOAT,
    VOID,
    Array,
    BaseType,
    MemberField,
    Struct,
    ValueType,
    is_scalar,
    size_of,
    stripped,
)

_FLOAT_ABI = 0x6  # of e_flags
_FLOAT_BYTES = {0: 0, 2: 4, 4: 8, 6: 16}
_MOST = 8  # members that are looked at: a structure in registers has two


class ReturnPiece(NamedTuple):
    """Bytes *offset* to *offset* + *size* - 1 of a value are the lowest ones of a *register*, by its name."""

    register: str
    offset: int
    size: int


class ReturnPlace(NamedTuple):
    """Where a value is: in *pieces*, or with none of them in memory, where the caller wanted it."""

    pieces: tuple[ReturnPiece, ...]

    @property
    def is_in_memory(self) -> bool:
        return not self.pieces


class FlatMember(NamedTuple):
    """A member of a structure, or of one in it, that is a number."""

    type: ValueType
    offset: int


def return_place(kind: ValueType, xlen: int, flags: int) -> ReturnPlace | None:
    """Return where a value of a type is returned; None: there is no value, or nobody knows where. *flags*: e_flags of
    the program.
    """
    behind, width = stripped(kind), xlen // 8
    if isinstance(behind, BaseType) and behind.kind == VOID:
        return None
    size = size_of(behind)
    if not size:
        return None
    if not is_scalar(behind) and not isinstance(behind, (Struct, Array)):
        return None
    if isinstance(behind, Struct) and behind.is_by_reference:
        return ReturnPlace(())
    floats = _in_float_registers(behind, width, _FLOAT_BYTES[flags & _FLOAT_ABI])
    if floats is not None:
        return floats
    if size > 2 * width:
        return ReturnPlace(())
    pieces = [ReturnPiece("a0", 0, min(size, width))]
    if size > width:
        pieces.append(ReturnPiece("a1", width, size - width))
    return ReturnPlace(tuple(pieces))


def _in_float_registers(kind: ValueType, width: int, bytes_of_float: int) -> ReturnPlace | None:
    """Return the registers of one or two numbers of which at least one is floating-point; None: others are used."""
    members = _flat(kind)
    if members is None or not 1 <= len(members) <= 2:
        return None
    floats = [_is_float(it.type) for it in members]
    if not any(floats) or (len(members) == 1 and not floats[0]):
        return None
    for it, is_float in zip(members, floats, strict=True):
        if size_of(it.type) > (bytes_of_float if is_float else width):
            return None
    registers = {True: iter(("fa0", "fa1")), False: iter(("a0", "a1"))}
    return ReturnPlace(tuple(
        ReturnPiece(next(registers[is_float]), it.offset, size_of(it.type))
        for it, is_float in zip(members, floats, strict=True)
    ))  # fmt: skip


def _is_float(kind: ValueType) -> bool:
    behind = stripped(kind)
    return isinstance(behind, BaseType) and behind.kind == FLOAT


def _flat(kind: ValueType) -> Sequence[FlatMember] | None:
    """Return the numbers that a value consists of; None: it is no structure of numbers, or of too many."""
    found: list[FlatMember] = []
    try:
        for one in _flattened(kind, 0):
            found.append(one)
            if len(found) > _MOST:
                return None
    except ValueError:
        return None
    return found


def _flattened(kind: ValueType, offset: int) -> Iterator[FlatMember]:
    """Yield the numbers of a value. Raises ValueError: there is a union, or a bit-field, in it."""
    behind = stripped(kind)
    if isinstance(behind, Struct):
        if behind.is_union or any(it.bits is not None for it in behind.members):
            raise ValueError
        members: Sequence[MemberField] = behind.members
        for it in members:
            yield from _flattened(it.type, offset + it.offset)
    elif isinstance(behind, Array):
        for at in range(min(behind.length or 0, _MOST + 1)):
            yield from _flattened(behind.target, offset + at * size_of(behind.target))
    else:
        yield FlatMember(kind, offset)
