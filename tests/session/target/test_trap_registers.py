"""What a hart says of its last trap: the registers of its mode, and nothing where a debugger cannot know that mode.

Ref: RISC-V Instruction Set Manual II: M-mode has m..., S-mode s...; in VS-mode a trap writes vs..., which a debugger
does not get under the names of S-mode.
"""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.decode.trap_cause import TrapRegisters
from rvtrace_gdb.session.target.trap_registers import trap_registers
from rvtrace_gdb.support.errors import Progress, silent

MISA, DCSR, H, V = 0x301, 0x7B0, 1 << 7, 1 << 5
M_CSRS: dict[CsrName, int] = {0x342: 2, 0x341: 0x8000_0010, 0x343: 0xBAD, 0x305: 0x8000_0100}
S_CSRS: dict[CsrName, int] = {0x142: 13, 0x141: 0x4000, 0x143: 0x5000, 0x105: 0x6000}
IN_M = TrapRegisters(3, 0x99, 2, 0x8000_0010, 0xBAD, 0x8000_0100)
IN_S = TrapRegisters(1, 0x99, 13, 0x4000, 0x5000, 0x6000)


class Registers:
    """A `CsrAccess` to values; those that are not there are refused."""

    name = "test"
    xlen = 64

    def __init__(self, values: dict[CsrName, int]) -> None:
        self._values = values

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        answers: list[CsrAnswer] = []
        for register, written in accesses:
            assert written is None, "nothing is changed"
            answers.append(self._values.get(register, "it is not there"))
            if isinstance(answers[-1], str):
                break
        return answers


def asked(privilege: int, *missing: CsrName, **more: int) -> TrapRegisters | None:
    named: dict[CsrName, int] = {MISA: more.get("misa", 1 << 18), DCSR: more.get("dcsr", 0)}
    values: dict[CsrName, int] = {"pc": 0x99, "priv": privilege, **M_CSRS, **S_CSRS, **named}
    return trap_registers(Registers({register: it for register, it in values.items() if register not in missing}))


def test_the_registers_of_the_mode() -> None:
    assert asked(3) == IN_M
    assert asked(1) == IN_S


def test_a_hart_that_may_be_in_a_guest() -> None:
    assert asked(1, misa=H) == IN_S
    assert asked(1, misa=H, dcsr=V) is None
    assert asked(1, DCSR, misa=H) is None
    assert asked(1, DCSR, MISA) is None and asked(1, DCSR, misa=0) is None, "misa need not be there"
    assert asked(3, DCSR, misa=H) == IN_M, "M-mode has no guests"


@pytest.mark.parametrize("missing", ["pc", "priv", 0x342, 0x341, 0x343, 0x305])
def test_a_register_that_is_refused(missing: CsrName) -> None:
    assert asked(3, missing) is None
