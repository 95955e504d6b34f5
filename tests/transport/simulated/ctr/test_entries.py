"""The entry registers of CTR on the simulated hart, how entries are cleared, and who may reach all that.

Expectations: CTR 1.0, "Entry Registers", "Supervisor CTR Clear Instruction"; draft 0.1.4, chapter 3 and 2.1 (CLR).
"""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.ctr.recorder import Mode
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.ctr.csrs import (
    ALL,
    MCTRCONTROL,
    MCTRCTL,
    MCTRSTATUS,
    MISELECT,
    SCTRCLR,
    SCTRCTL,
    SCTRDEPTH,
    SCTRSTATUS,
    SIREG,
    SIREG2,
    SISELECT,
    VSCTRCONTROL,
    hart_with_ctr,
    registers,
    written,
)
from tests.transport.simulated.hart.encoded_code import BASE, HANDLER, MRET, NOP, RAM_SIZE, SPIN, Csr, csrr, csrrw, put

# -- entries


@pytest.mark.parametrize(("version", "select"), [("1.0", SISELECT), ("0.1.4", MISELECT)])
def test_entries_are_reached_through_the_select_register(version: str, select: int) -> None:
    hart = hart_with_ctr(version, depths=(32,), exponent_bits=2)
    for entry in range(0x200, 0x220):
        assert written(hart, select, entry) == entry
        for register in (1, 2, 3):
            hart.csr_write(select + register, entry << 20 | register, debug=True)
    for entry in range(0x200, 0x220):
        hart.csr_write(select, entry)
        found = [hart.csr_read(select + register) for register in (1, 2, 3)]
        assert found == [entry << 20 | 1, entry << 20 | 2, 3 | (entry << 20 & 0x3FFF0000)]
        assert [hart.csr_read(select + zero) for zero in (5, 6, 7)] == [0, 0, 0]
    hart.csr_write(select, 0x220)
    assert [written(hart, select + register, ALL) for register in (1, 2, 3)] == [0, 0, 0]


@pytest.mark.parametrize(("version", "select"), [("1.0", SISELECT), ("0.1.4", MISELECT)])
@pytest.mark.parametrize("value", [0, 0x1FF, 0x300, 0x40])
def test_there_is_nothing_behind_other_values_of_the_select_register(version: str, select: int, value: int) -> None:
    hart = hart_with_ctr(version)
    assert written(hart, select, value) == value
    for register in (1, 2, 3, 5, 6, 7):
        with pytest.raises(IllegalCsr):
            hart.csr_read(select + register, debug=True)
        with pytest.raises(IllegalCsr):
            hart.csr_write(select + register, 0, debug=True)


@pytest.mark.parametrize("version", ["1.0", "0.1.4"])
def test_a_guest_sees_the_same_entries(version: str) -> None:
    _, all_of = registers(version)
    csrs = all_of.by_number
    csrs[0x150].write(0x203)
    csrs[0x250].write(0x203)
    csrs[0x152].write(0x1234_5678)
    assert csrs[0x252].read() == 0x1234_5678
    csrs[0x250].write(0x204)  # the select registers are two
    assert csrs[0x150].read() == 0x203


def test_entries_on_rv32_show_32_bits() -> None:
    hart = hart_with_ctr("1.0", 32)
    hart.csr_write(SISELECT, 0x200)
    assert [written(hart, SISELECT + n, ALL) for n in (1, 2, 3)] == [0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF800F]


# -- clearing


def test_clr_clears_entries_and_status_and_reads_zero() -> None:
    hart = hart_with_ctr("0.1.4")
    hart.csr_write(MISELECT, 0x200)
    hart.csr_write(0x351, ALL)
    hart.csr_write(MCTRSTATUS, ALL)
    assert written(hart, MCTRCONTROL, 1 << 7 | 4) == 4
    assert (hart.csr_read(0x351), hart.csr_read(MCTRSTATUS)) == (0, 0)


def test_clr_of_a_guest_acts_only_in_a_guest() -> None:
    recorder, all_of = registers("0.1.4")
    csrs = all_of.by_number
    for mode, left in ((Mode.M, 1 << 15 | 3), (Mode.S, 1 << 15 | 3), (Mode.VS, 0)):
        csrs[MCTRSTATUS].write(1 << 15 | 3)
        recorder.mode = mode
        csrs[VSCTRCONTROL].write(1 << 7)
        assert csrs[MCTRSTATUS].read() == left


def test_sctrclr_clears_entries_of_all_depths_and_not_the_status() -> None:
    hart = hart_with_ctr("1.0", 64, SCTRCLR)
    hart.csr_write(SCTRDEPTH, 4)
    for entry in (0x200, 0x2FF):
        hart.csr_write(SISELECT, entry)
        hart.csr_write(SIREG, ALL)
    hart.csr_write(SCTRDEPTH, 0)
    hart.csr_write(SCTRSTATUS, 1 << 31 | 9)
    hart.run(1)
    assert hart.csr_read(SCTRSTATUS) == 1 << 31 | 9
    hart.csr_write(SCTRDEPTH, 4)
    for entry in range(0x200, 0x300):
        hart.csr_write(SISELECT, entry)
        assert hart.csr_read(SIREG) == 0


# -- who may


def causes(hart: Hart) -> int:
    hart.csr_write(Csr.MTVEC, HANDLER, debug=True)
    hart.run(3)
    return hart.csr_read(Csr.MCAUSE, debug=True)


@pytest.mark.parametrize("version", ["0.1.4", None])
def test_sctrclr_is_illegal_where_it_does_not_exist(version: str | None) -> None:
    if version is None:
        hart = Hart(Bus(BASE, RAM_SIZE), 64, "IMAC")
        put(hart, BASE, SCTRCLR)
    else:
        hart = hart_with_ctr(version, 64, SCTRCLR)
    put(hart, HANDLER, SPIN)
    assert causes(hart) == 2
    assert hart.csr_read(Csr.MTVAL) == SCTRCLR


@pytest.mark.parametrize(
    ("version", "word"),
    [
        ("1.0", SCTRCLR),
        *(("1.0", csrr(5, number)) for number in (SCTRCTL, SCTRSTATUS, SCTRDEPTH, MCTRCTL, SISELECT, SIREG)),
        *(("0.1.4", csrr(5, number)) for number in (MCTRCONTROL, MCTRSTATUS, MISELECT, 0x351)),
    ],
)
def test_user_mode_has_no_access(version: str, word: int) -> None:
    hart = hart_with_ctr(version, 64, MRET, NOP, NOP, word)
    hart.csr_write(SISELECT if version == "1.0" else MISELECT, 0x200)
    hart.csr_write(Csr.MEPC, BASE + 12)  # MPP is U mode after reset
    put(hart, HANDLER, SPIN)
    assert causes(hart) == 2
    assert hart.csr_read(Csr.MTVAL) == word


def test_machine_mode_uses_siselect() -> None:
    """1.0: the entries are not reachable through miselect, also not from M mode."""
    hart = hart_with_ctr("1.0", 64, csrrw(0, SISELECT, 6), csrrw(0, SIREG2, 7), csrr(8, SIREG2))
    hart.x[6], hart.x[7] = 0x201, 0x1235
    hart.run(3)
    assert hart.x[8] == 0x1234
