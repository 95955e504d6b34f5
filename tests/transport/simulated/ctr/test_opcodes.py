"""Which transfer each instruction is to the CTR recorder of the simulated hart.

Expectations: CTR 1.0, "Control Transfer Type Definitions" (the opcodes of each type, written out here); draft 0.1.4,
5.2 names the same types by reference.
"""

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.decode.semantics.encodings import Decoder
from rvtrace_gdb.transport.simulated.ctr.hart_side import transfer_of
from tests.transport.simulated.ctr.harts import (
    MCTRCTL,
    NOT_TAKEN,
    NTBREN,
    TAKEN,
    TRAP_RETURN,
    M,
    branch,
    hart_with_ctr,
    jal,
    jalr,
    records,
)
from tests.transport.simulated.hart.encoded_code import BASE, EBREAK, ECALL, MRET, NOP, SPIN, WFI, csrrw

# -- "Control Transfer Type Definitions": opcodes


def jalr_types() -> dict[tuple[int, int], int]:
    """JALR rd, rs: each row of the table claims its pairs."""
    link, registers = {1, 5}, set(range(32))
    types: dict[tuple[int, int], int] = {}

    def claim(type: int, rds: set[int], sources: set[int]) -> None:
        for rd in rds:
            for rs in sources:
                assert (rd, rs) not in types
                types[rd, rs] = type

    claim(8, {1}, registers - {5})
    claim(8, {5}, registers - {1})
    claim(10, {0}, registers - link)
    claim(12, {1}, {5})
    claim(12, {5}, {1})
    claim(13, registers - link, link)
    claim(14, registers - {0, 1, 5}, registers - link)
    return types


DECODERS = {xlen: Decoder(xlen, "IMAC") for xlen in (32, 64)}


def type_of(word: int, xlen: int = 64) -> int:
    return transfer_of(DECODERS[xlen].decode(word))


def test_jalr() -> None:
    types = jalr_types()
    assert len(types) == 32 * 32
    assert {pair: type_of(jalr(*pair)) for pair in types} == types


def test_jal() -> None:
    expected = dict.fromkeys(range(32), 15) | {1: 9, 5: 9, 0: 11}
    assert {rd: type_of(jal(rd, 8)) for rd in range(32)} == expected


def test_compressed_jumps() -> None:
    c_jr = {rs: 0x8002 | rs << 7 for rs in range(1, 32)}
    c_jalr = {rs: 0x9002 | rs << 7 for rs in range(1, 32)}
    assert {rs: type_of(word) for rs, word in c_jr.items()} == {rs: 13 if rs in (1, 5) else 10 for rs in c_jr}
    assert {rs: type_of(word) for rs, word in c_jalr.items()} == {rs: 12 if rs == 5 else 8 for rs in c_jalr}
    assert type_of(0xA001) == 11  # c.j
    assert type_of(0x2001, 32) == 9  # c.jal, which is c.addiw on RV64
    assert type_of(0x2085, 64) == 0
    assert type_of(0x9002) == 0  # c.ebreak


def test_branches_and_the_rest() -> None:
    for funct3 in (0, 1, 4, 5, 6, 7):
        assert type_of(branch(funct3, 1, 2, 8)) == NOT_TAKEN
    assert type_of(0xC001) == type_of(0xE001) == NOT_TAKEN  # c.beqz, c.bnez
    assert type_of(MRET) == TRAP_RETURN
    for word in (NOP, ECALL, EBREAK, WFI, 0x10400073, csrrw(5, 0x340, 6)):
        assert type_of(word) == TransferType.NONE


# -- branches


@pytest.mark.parametrize("offset", [4, 8], ids=["to the next instruction", "further"])
@pytest.mark.parametrize(("funct3", "a", "b", "taken"), [
    (0, 5, 5, True), (0, 5, 6, False), (1, 5, 6, True), (1, 5, 5, False), (4, -1, 1, True), (4, 1, -1, False),
    (4, 3, 3, False), (5, 1, -1, True), (5, -1, 1, False), (5, 3, 3, True), (6, 1, -1, True), (6, -1, 1, False),
    (7, -1, 1, True), (7, 1, -1, False),
])  # fmt: skip
@pytest.mark.parametrize("xlen", [32, 64])
def test_branches_taken_and_not(funct3: int, a: int, b: int, taken: bool, offset: int, xlen: int) -> None:
    """Also where both ways lead to the same place."""
    hart = hart_with_ctr(branch(funct3, 6, 7, offset), NOP, SPIN, control=M, xlen=xlen)
    control = hart.csr_read(MCTRCTL)
    assert hart.ctr is not None
    hart.ctr.recorder.control = control | NTBREN  # not to be reached by CSR on RV32
    hart.x[6], hart.x[7] = a & (1 << xlen) - 1, b & (1 << xlen) - 1
    hart.run(1)
    assert records(hart) == [(BASE, BASE + (offset if taken else 4), TAKEN if taken else NOT_TAKEN)]


def test_a_compressed_branch_to_the_next_instruction() -> None:
    """c.beqz s0, .+2"""
    hart = hart_with_ctr(0x0001_C009, SPIN, control=M | NTBREN)
    hart.run(1)
    assert records(hart) == [(BASE, BASE + 2, TAKEN)]
    other = hart_with_ctr(0x0001_C009, SPIN, control=M | NTBREN)
    other.x[8] = 1
    other.run(1)
    assert records(other) == [(BASE, BASE + 2, NOT_TAKEN)]
