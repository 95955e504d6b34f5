"""What is believed of registers that were saved with a capture."""

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.session.past.saved_facts import _extensions, _files

F0, MISA = 0x1020, 0x301


def test_floating_point_registers_of_unknown_width() -> None:
    """Without misa nobody knows whether 32 bits are all, or the low half of a double."""
    registers = {F0: 0x3F80_0000, F0 + 1: 0xFFFF_FFFF_3F80_0000}
    assert _files(registers)[1][:3] == [None, 0xFFFF_FFFF_3F80_0000, None]
    assert _files({**registers, MISA: 1 << 5})[1][:2] == [0x3F80_0000, 0xFFFF_FFFF_3F80_0000]


def test_floating_point_in_integer_registers() -> None:
    """ISA manual, "Zfinx": the encodings are those of F, the registers are not."""
    assert {"F", "D"} <= set(_extensions([Elf("", "", 32)], None))
    assert not {"F", "D"} & set(_extensions([Elf("", "", 32, isa="rv32i2p1_zfinx1p0")], None))
    assert not {"F", "D"} & set(_extensions([Elf("", "", 32)], 1 << 8))
