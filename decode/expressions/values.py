"""Values of a program: bytes with a type, in memory or not, of which some may be unknown."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.locations import ExpressionMoment, UnknownValue
from rvtrace_gdb.decode.expressions.types import (
    FLOAT,
    BaseType,
    ValueType,
    is_float,
    is_signed,
    size_of,
    stripped,
)

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_QUAD_BIAS, _QUAD_FRACTION = 16383, 112


class TypedValue(NamedTuple):
    """A value.

    address    in memory, None: it has none
    content    its bytes; None: those in memory
    bits       (lowest bit, how many) of a bit-field
    reference  the type of the reference that led to it, None: none did
    """

    type: ValueType
    address: int | None = None
    content: Sequence[int | None] | None = None
    bits: tuple[int, int] | None = None
    reference: ValueType | None = None


def content_of(value: TypedValue, moment: ExpressionMoment) -> Sequence[int | None]:
    """Return the bytes of a value; None for unknown ones."""
    if value.content is not None:
        return value.content
    assert value.address is not None
    size = size_of(value.type) if value.bits is None else (sum(value.bits) + 7) // 8
    return moment.memory(value.address, size)


def known_content(value: TypedValue, moment: ExpressionMoment) -> bytes:
    """Return the bytes of a value. Raises UnknownValue."""
    found = content_of(value, moment)
    try:
        return bytes(found)  # type: ignore[arg-type] # None is what it refuses
    except TypeError:
        raise UnknownValue from None


def scalar_of(value: TypedValue, moment: ExpressionMoment) -> int | float:
    """Return the number that a scalar value is. Raises UnknownValue."""
    data = known_content(value, moment)
    if value.bits is not None:
        return _of_bits(int.from_bytes(data, "little"), value)
    if is_float(value.type):
        return _float(data)
    return int.from_bytes(data, "little", signed=is_signed(value.type))


def _of_bits(number: int, value: TypedValue) -> int:
    assert value.bits is not None
    lowest, count = value.bits
    found = number >> lowest & (1 << count) - 1
    return found - (1 << count) if is_signed(value.type) and found >> (count - 1) else found


def _float(data: bytes) -> float:
    form = _FLOATS.get(len(data))
    if form is not None:
        return float(struct.unpack(form, data)[0])
    whole = int.from_bytes(data, "little")  # 128 bits: to the nearest that Python has
    sign, exponent = whole >> 127, (whole >> _QUAD_FRACTION) & 0x7FFF
    fraction = whole & (1 << _QUAD_FRACTION) - 1
    if exponent == 0x7FFF:
        return float("nan") if fraction else float("-inf" if sign else "inf")
    scaled = (fraction | (bool(exponent) << _QUAD_FRACTION)) / (1 << _QUAD_FRACTION)
    try:
        found = scaled * 2.0 ** (max(exponent, 1) - _QUAD_BIAS)
    except OverflowError:
        found = float("inf")
    return -found if sign else found


def number_value(kind: ValueType, number: int | float) -> TypedValue:
    """Return a number as a value of a type."""
    size = size_of(kind)
    behind = stripped(kind)
    if isinstance(behind, BaseType) and behind.kind == FLOAT:
        form = _FLOATS.get(size, "<d")
        try:
            content = struct.pack(form, number)
        except OverflowError:
            content = struct.pack(form, float("inf") if number > 0 else float("-inf"))
        return TypedValue(kind, content=content.ljust(size, b"\0"))
    return TypedValue(kind, content=(int(number) & (1 << 8 * size) - 1).to_bytes(size, "little"))
