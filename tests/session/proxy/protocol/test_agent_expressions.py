"""Agent expressions, by their descriptions in gdb's manual ("Bytecode Descriptions"), with C's arithmetic."""

import pytest

from rvtrace_gdb.session.proxy.protocol.agent_expressions import PastValues, is_zero
from rvtrace_gdb.session.proxy.protocol.packets import Breakpoint, Breakpoints, conditions_in

VALUES = PastValues({10: 7, 11: (1 << 64) - 3}.get, lambda address, size: b"\x85\xff\x00\x01"[address : address + size])
ZERO = [
    "26 000a 22 07 13 0e 27",  # a0 == 7, negated
    "26 000b 22 00 15 27",  # a1 < 0, unsigned
    "22 00 26 000b 14 27",  # 0 < a1, signed: it is -3
    "22 07 22 02 06 22 03 03 27",  # 7 / 2 - 3
    "26 000b 22 02 05 22 01 02 27",  # -3 / 2 is -1
    "26 000b 22 02 07 22 01 02 27",  # -3 % 2 is -1
    "22 00 17 16 08 22 7b 02 27",  # the byte 0x85, extended with its sign, and 0x7b
    "22 00 18 23 ff85 11 27",  # two bytes, little-endian
    "22 ff 2a 04 22 0f 03 27",  # the low four bits
    "22 01 20 000a 22 01 21 000c 22 05 22 00 27",  # goto
    "26 000a 28 03 27",  # dup
    "22 01 22 03 2b 03 22 02 03 27",  # swap: 3 - 1 - 2
    "26 000b 22 01 0a 22 02 02 27",  # -3 >> 1 is -2
    "26 000b 12 22 02 03 27",  # ~-3 is 2
]  # fmt: skip
NOT_ZERO = [
    "26 000a 27", "26 000b 22 00 14 27", "22 00 0e 27",
    "26 000c 27",  # a register that is not known
    "22 02 1a 27",  # memory of which not all is known
    "22 00 2c 0001 27",  # a trace state variable
    "22 00 22 00 05 27",  # a division by zero
    "22 00",  # without an end
    "21 0000",  # without end
    "27", "02 27", "",
]  # fmt: skip


@pytest.mark.parametrize("code", ZERO)
def test_zero(code: str) -> None:
    assert is_zero(bytes.fromhex(code), VALUES)


@pytest.mark.parametrize("code", NOT_ZERO)
def test_not_certainly_zero(code: str) -> None:
    assert not is_zero(bytes.fromhex(code), VALUES)


def test_conditions_of_packets() -> None:
    assert conditions_in(b"Z0,80000000,2;X3,220027X1,27") == (b"\x22\x00\x27", b"\x27")
    assert conditions_in(b"Z0,80000000,2") == () == conditions_in(b"Z0,80000000,2;cmds:0,X3,220027")
    found = Breakpoints()
    software, hardware = (Breakpoint.from_packet(b"Z%d,1000,2;X1,27" % kind) for kind in (0, 1))
    assert software is not None and hardware is not None
    found.inserted(software, (b"\x27",))
    assert found.conditions_at(0x1000) == (b"\x27",)
    found.inserted(hardware)
    assert found.conditions_at(0x1000) == ()
    found.removed(hardware)
    found.inserted(software)
    assert found.conditions_at(0x1000) == ()
