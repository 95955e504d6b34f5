"""The table machinery: what must not be declared, and what a register object can do."""

from enum import IntEnum

import pytest

from rvtrace_gdb.controlregs.fields import (
    Compliance,
    Field,
    FieldAccess,
    FieldRange,
    Register,
    RegisterBlock,
    Reset,
    reserved,
)
from rvtrace_gdb.support.errors import RvtraceError


class Colour(IntEnum):
    RED = 1
    BLUE = 2


def register(*fields: Field, offset: int = 0x10, name: str = "r") -> Register:
    return Register(name, offset, Compliance.OPTIONAL, "", fields)


R = register(
    Field("go", 1, FieldAccess.RW, 1),
    reserved(3),
    Field("colour", 4, values=Colour),
    Field("done", 1, FieldAccess.RW1C),
    reserved(7),
    Field("count", 16, FieldAccess.RO, Reset.CONSTANT),
)


def test_widths_must_sum_to_32() -> None:
    with pytest.raises(ValueError, match="the fields of r have 31 bits, not 32"):
        register(Field("a", 31))


@pytest.mark.parametrize("offset", [0x11, 0x1000, -4])
def test_offset_must_lie_in_the_block(offset: int) -> None:
    with pytest.raises(ValueError, match="cannot be at offset"):
        register(Field("a", 32), offset=offset)


def test_names_are_declared_once() -> None:
    with pytest.raises(ValueError, match="declares a twice"):
        register(Field("a", 16), Field("a", 16))
    one, same_offset = register(Field("a", 32)), register(Field("b", 32), name="s")
    with pytest.raises(ValueError, match="share"):
        RegisterBlock("block", "tr", 1, (one, same_offset))


def test_fields_are_where_the_widths_put_them() -> None:
    assert R.mask("colour") == 0xF0
    assert R.mask("go", "count") == 0xFFFF_0001
    assert R.lsb("count") == 16
    assert R.get(0x1234_5678, "colour") == 7
    assert R.put(0xFFFF_FFFF, "colour", 0) == 0xFFFF_FF0F
    assert R.pack(go=1, colour=2, count=0xABCD) == 0xABCD_0021
    assert R.unpack(0xABCD_0121) == {"go": 1, "colour": 2, "done": 1, "count": 0xABCD}
    assert R.reset_value == 1
    assert R.mask_of(FieldAccess.RW, FieldAccess.RW1C) == 0x101


def test_codes_have_names() -> None:
    assert [R.by_name["colour"].value_name(n) for n in range(3)] == ["0", "red", "blue"]
    assert R.by_name["count"].value_name(7) == "7"


@pytest.mark.parametrize("value", [16, -1])
def test_values_that_do_not_fit_are_refused(value: int) -> None:
    with pytest.raises(FieldRange, match=f"{value} does not fit colour, which has 4 bits: give 0 to 15") as caught:
        R.pack(colour=value)
    assert isinstance(caught.value, RvtraceError)
    assert (caught.value.field_name, caught.value.value, caught.value.width) == ("colour", value, 4)
