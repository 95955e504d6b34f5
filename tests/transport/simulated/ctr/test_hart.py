"""What the simulated hart tells its CTR recorder, where a program alone does not show it (test_model.py has those).

Encodings: the RISC-V Instruction Set Manual, volume I, "Control Transfer Instructions"; numbers from CTR 1.0, "CSRs".
"""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import Clint
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.hart.encoded_code import (
    BASE,
    EBREAK,
    HANDLER,
    NOP,
    RAM_SIZE,
    SPIN,
    Csr,
    addi,
    csrrw,
    put,
)

MCTRCTL, SCTRSTATUS, SISELECT = 0x34E, 0x14F, 0x150
M, BPFRZ, NTBREN = 4, 1 << 11, 1 << 36
NOT_TAKEN, TAKEN, INDIRECT_CALL, DIRECT_JUMP, FUNCTION_RETURN = 4, 5, 8, 11, 13


def jal(rd: int, offset: int) -> int:
    bits = offset & 0x1FFFFF
    immediate = (bits >> 20) << 31 | (bits >> 1 & 0x3FF) << 21 | (bits >> 11 & 1) << 20 | (bits >> 12 & 0xFF) << 12
    return immediate | rd << 7 | 0x6F


def jalr(rd: int, rs1: int) -> int:
    return rs1 << 15 | rd << 7 | 0x67


def branch(funct3: int, rs1: int, rs2: int, offset: int) -> int:
    bits = offset & 0x1FFF
    immediate = (bits >> 12) << 31 | (bits >> 5 & 0x3F) << 25 | (bits >> 1 & 0xF) << 8 | (bits >> 11 & 1) << 7
    return immediate | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63


def hart_with_ctr(*words: int, control: int = M, xlen: int = 64, absent: frozenset[str] | None = None) -> Hart:
    """Recording as *control* says; traps go to HANDLER, where the hart then spins."""
    build = CtrBuild("1.0") if absent is None else CtrBuild("1.0", absent=absent)
    hart = Hart(Bus(BASE, RAM_SIZE), xlen, "IMAC", ctr=build)
    Clint(hart, hart.bus)
    put(hart, BASE, *words)
    put(hart, HANDLER, SPIN)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.csr_write(MCTRCTL, control)
    return hart


def records(hart: Hart) -> list[tuple[int, int, int]]:
    """Source, target and type, the oldest first."""
    found = []
    for entry in range(16):
        hart.csr_write(SISELECT, 0x200 + entry, debug=True)
        source, target, data = (hart.csr_read(SISELECT + n, debug=True) for n in (1, 2, 3))
        if source & 1:
            found.append((source - 1, target, data & 0xF))
    return found[::-1]


@pytest.mark.parametrize("xlen", [32, 64])
@pytest.mark.parametrize(("funct3", "a", "b", "taken"), [
    (0, 5, 5, True), (0, 5, 6, False), (1, 5, 6, True), (1, 5, 5, False), (4, -1, 1, True), (4, 1, -1, False),
    (4, 3, 3, False), (5, 1, -1, True), (5, -1, 1, False), (5, 3, 3, True), (6, 1, -1, True), (6, -1, 1, False),
    (7, -1, 1, True), (7, 1, -1, False),
])  # fmt: skip
def test_branches_taken_and_not(funct3: int, a: int, b: int, taken: bool, xlen: int) -> None:
    """Also where both ways lead to the same place."""
    for offset in (4, 8):
        hart = hart_with_ctr(branch(funct3, 6, 7, offset), NOP, SPIN, xlen=xlen)
        assert hart.ctr is not None
        hart.ctr.recorder.control = M | NTBREN  # not to be reached by CSR on RV32
        hart.x[6], hart.x[7] = a & (1 << xlen) - 1, b & (1 << xlen) - 1
        hart.run(1)
        assert records(hart) == [(BASE, BASE + (offset if taken else 4), TAKEN if taken else NOT_TAKEN)]


def test_the_cycle_of_the_write_that_ends_freezing_does_not_count() -> None:
    hart = hart_with_ctr(jal(0, 4), EBREAK, control=M | BPFRZ)
    put(hart, HANDLER, csrrw(0, SCTRSTATUS, 6), jal(0, 4), SPIN)
    hart.x[6] = 1
    hart.run(10)
    assert records(hart)[:2] == [(BASE, BASE + 4, DIRECT_JUMP), (HANDLER + 4, HANDLER + 8, DIRECT_JUMP)]
    assert hart.ctr is not None
    assert hart.ctr.recorder.buffer.read(len(records(hart)) - 2).data == 11 | 1 << 15 | 1 << 16


def test_mispredictions() -> None:
    """A loop of three rounds: its branch back is expected but in the last, its forward branch is not in the second.

    The predictor is that of `ctr.predictor`.
    """
    loop = [branch(1, 5, 9, 8), NOP, addi(5, 5, -1), jalr(1, 8), branch(1, 5, 0, -16), EBREAK]
    hart = hart_with_ctr(*loop, control=M | BPFRZ | NTBREN, absent=frozenset())
    put(hart, BASE + 0x100, jalr(0, 1))
    hart.x[5], hart.x[8], hart.x[9] = 3, BASE + 0x100, 2
    hart.run(40)
    forward_taken, forward_not = (TAKEN, True), (NOT_TAKEN, False)
    back_taken, back_not, back = (TAKEN, False), (NOT_TAKEN, True), (FUNCTION_RETURN, False)
    first, again = (INDIRECT_CALL, True), (INDIRECT_CALL, False)
    assert [(type, bool(target & 1)) for _, target, type in records(hart)] == [
        *(forward_taken, first, back, back_taken),
        *(forward_not, again, back, back_taken),
        *(forward_taken, again, back, back_not),
    ]
