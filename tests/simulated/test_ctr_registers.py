"""The CTR CSRs of the simulated hart: which there are, their bits, who may access them, how entries are reached.

Expectations: CTR 1.0, "CSRs", "Entry Registers", "Supervisor CTR Clear Instruction"; draft 0.1.4, chapters 2 and 3.
Numbers and bits are written out here from the documents.
"""

import pytest

from tests.simulated.code import BASE, HANDLER, MRET, NOP, RAM_SIZE, SPIN, Csr, csrr, csrrw, put
from transport.simulated.bus import Bus
from transport.simulated.clint import Clint
from transport.simulated.ctr.build import CtrBuild, CtrNotBuildable
from transport.simulated.ctr.recorder import Recorder
from transport.simulated.ctr.registers import CtrRegisters
from transport.simulated.ctr.transfer import Mode
from transport.simulated.hart import Hart, IllegalCsr

SCTRCTL, SCTRSTATUS, SCTRDEPTH, VSCTRCTL, MCTRCTL = 0x14E, 0x14F, 0x15F, 0x24E, 0x34E
SISELECT, SIREG, SIREG2, SIREG3 = 0x150, 0x151, 0x152, 0x153
MCTRCONTROL, MCTRCONTROLH, MCTRSTATUS = 0x381, 0x382, 0x383
SCTRCONTROL, SCTRCONTROLH, DRAFT_SCTRSTATUS = 0x181, 0x182, 0x183
VSCTRCONTROL, VSCTRCONTROLH = 0x281, 0x282
MISELECT = 0x350
SCTRCLR = 0x10400073

FILTERS = 0xFF3E << 32
RATIFIED = FILTERS | 0x1B87  # U S M, RASEMU, STE MTE, BPFRZ LCOFIFRZ
DRAFT_M_AND_U = FILTERS | 1 << 38 | 0x1D05  # M U, MTE, RASEMU, BPFRZ LCOFIFRZ: no S mode, no S and STE
ALL = (1 << 64) - 1


def hart_with_ctr(version: str = "1.0", xlen: int = 64, *words: int, **built: object) -> Hart:
    hart = Hart(Bus(BASE, RAM_SIZE), xlen, "IMAC", ctr=CtrBuild(version, **built))  # type: ignore[arg-type]
    Clint(hart, hart.bus)
    put(hart, BASE, *words, SPIN)
    return hart


def written(hart: Hart, number: int, value: int) -> int:
    hart.csr_write(number, value, debug=True)
    return hart.csr_read(number, debug=True)


def accessible(hart: Hart) -> set[int]:
    """CSRs the hart has beyond those of one without CTR."""

    def numbers(of: Hart) -> set[int]:
        found = set()
        for number in range(0x1000):
            try:
                of.csr_read(number, debug=True)
                found.add(number)
            except IllegalCsr:
                pass
        return found

    return numbers(hart) - numbers(Hart(Bus(BASE, RAM_SIZE), hart.xlen, "IMAC"))


def registers(version: str, xlen: int = 64) -> tuple[Recorder, CtrRegisters]:
    """Of a hart with all modes."""
    recorder = Recorder(CtrBuild(version, modes=frozenset(Mode)))
    return recorder, CtrRegisters(recorder, xlen)


# -- which there are


def test_the_csrs_of_1_0() -> None:
    hart = hart_with_ctr()
    hart.csr_write(SISELECT, 0x200)
    entries = {SISELECT, SIREG, SIREG2, SIREG3, 0x155, 0x156, 0x157}
    assert accessible(hart) == {SCTRCTL, SCTRSTATUS, SCTRDEPTH, MCTRCTL} | entries


@pytest.mark.parametrize("xlen", [32, 64])
def test_the_csrs_of_the_draft_without_s_mode(xlen: int) -> None:
    hart = hart_with_ctr("0.1.4", xlen)
    hart.csr_write(MISELECT, 0x200)
    entries = {MISELECT, 0x351, 0x352, 0x353, 0x355, 0x356, 0x357}
    assert accessible(hart) == {MCTRCONTROL, MCTRSTATUS} | ({MCTRCONTROLH} if xlen == 32 else set()) | entries


def test_the_csrs_of_harts_with_all_modes() -> None:
    select = {first + n for first in (0x150, 0x250) for n in (0, 1, 2, 3, 5, 6, 7)}
    machine = {MISELECT + n for n in (0, 1, 2, 3, 5, 6, 7)}
    draft = {MCTRCONTROL, SCTRCONTROL, VSCTRCONTROL, MCTRSTATUS, DRAFT_SCTRSTATUS} | select | machine
    assert set(registers("1.0")[1].by_number) == {SCTRCTL, SCTRSTATUS, SCTRDEPTH, VSCTRCTL, MCTRCTL} | select
    assert set(registers("0.1.4")[1].by_number) == draft
    assert set(registers("0.1.4", 32)[1].by_number) == draft | {MCTRCONTROLH, SCTRCONTROLH, VSCTRCONTROLH}


def test_a_hart_without_ctr_has_none() -> None:
    hart = Hart(Bus(BASE, RAM_SIZE), 64, "IMAC")
    for number in (SCTRCTL, SCTRSTATUS, SCTRDEPTH, MCTRCTL, SISELECT, SIREG, MCTRCONTROL, MCTRSTATUS, MISELECT):
        with pytest.raises(IllegalCsr):
            hart.csr_read(number, debug=True)


# -- control


def test_the_fields_of_the_control_registers() -> None:
    assert written(hart_with_ctr(), MCTRCTL, ALL) == RATIFIED
    assert written(hart_with_ctr("0.1.4"), MCTRCONTROL, ALL) == DRAFT_M_AND_U | 0xF << 16  # CLR reads 0


def test_sctrctl_lacks_m_and_mte() -> None:
    hart = hart_with_ctr()
    hart.csr_write(MCTRCTL, ALL)
    assert hart.csr_read(SCTRCTL) == RATIFIED & ~(1 << 2 | 1 << 9)
    hart.csr_write(SCTRCTL, 0)
    assert hart.csr_read(MCTRCTL) == 1 << 2 | 1 << 9
    assert written(hart, SCTRCTL, ALL) == RATIFIED & ~(1 << 2 | 1 << 9)


def test_sctrcontrol_lacks_m_and_mte() -> None:
    recorder, all_of = registers("0.1.4")
    csrs = all_of.by_number
    csrs[MCTRCONTROL].write(ALL)
    everything = FILTERS | 1 << 38 | 0xF << 16 | 0x1F07
    assert csrs[MCTRCONTROL].read() == everything
    assert csrs[SCTRCONTROL].read() == everything & ~(1 | 1 << 8)
    csrs[SCTRCONTROL].write(0)
    assert csrs[MCTRCONTROL].read() == 1 | 1 << 8
    assert recorder.buffer.depth == 16  # DEPTH is written through it, too


@pytest.mark.parametrize(("version", "number"), [("1.0", VSCTRCTL), ("0.1.4", VSCTRCONTROL)])
def test_the_control_register_of_a_guest(version: str, number: int) -> None:
    recorder, all_of = registers(version)
    recorder.buffer.select(64)
    csr = all_of.by_number[number]
    csr.write(ALL)
    own = RATIFIED & ~(1 << 2 | 1 << 9) if version == "1.0" else FILTERS | 1 << 38 | 0x1E06 | 0b0011 << 16
    assert csr.read() == own
    assert recorder.control == 0
    assert recorder.buffer.depth == 64  # the draft's DEPTH is a read-only copy here


def test_rv32_reaches_the_upper_half_in_the_draft_only() -> None:
    draft = hart_with_ctr("0.1.4", 32)
    assert written(draft, MCTRCONTROL, ALL) == (DRAFT_M_AND_U | 0xF << 16) & 0xFFFFFFFF
    assert written(draft, MCTRCONTROLH, ALL) == DRAFT_M_AND_U >> 32
    assert written(draft, MCTRCONTROL, 0) == 0
    assert draft.csr_read(MCTRCONTROLH) == DRAFT_M_AND_U >> 32
    ratified = hart_with_ctr("1.0", 32)
    assert written(ratified, MCTRCTL, ALL) == RATIFIED & 0xFFFFFFFF
    assert ratified.ctr is not None
    assert ratified.ctr.recorder.control == RATIFIED & 0xFFFFFFFF


@pytest.mark.parametrize("version", ["1.0", "0.1.4"])
def test_absent_fields_read_zero(version: str) -> None:
    absent = CtrBuild(version).optional - {"TYPE"}
    hart = hart_with_ctr(version, absent=absent | {"TYPE"}, exponent_bits=None, depths=(32,))
    number, mandatory = {"1.0": (MCTRCTL, 1 << 11 | 7), "0.1.4": (MCTRCONTROL, 0b0001 << 16 | 5)}[version]
    assert written(hart, number, ALL) == mandatory
    select = SISELECT if version == "1.0" else MISELECT
    hart.csr_write(select, 0x200)
    assert [written(hart, select + n, ALL) for n in (1, 2, 3)] == [ALL, ALL - 1, 0]


# -- depth


@pytest.mark.parametrize(
    ("depths", "reads"),
    [
        ((16, 32, 64, 128, 256), [0, 1, 2, 3, 4, 4, 4, 4]),
        ((16, 64), [0, 0, 2, 2, 2, 2, 2, 2]),
        ((128,), [3] * 8),
    ],
)
def test_sctrdepth(depths: tuple[int, ...], reads: list[int]) -> None:
    hart = hart_with_ctr(depths=depths)
    assert [written(hart, SCTRDEPTH, value) for value in range(8)] == reads
    assert written(hart, SCTRDEPTH, ALL) == reads[7]


@pytest.mark.parametrize(
    ("depths", "low", "high"),
    [((16, 32, 64, 128, 256), 0b0000, 0b1111), ((32, 64), 0b0001, 0b0011), ((64,), 0b0011, 0b0011)],
)
def test_depth_of_the_draft(depths: tuple[int, ...], low: int, high: int) -> None:
    """Chapter 6, "Discovery": writing 0000 reads back the smallest depth, 1111 the largest; all between exist."""
    hart = hart_with_ctr("0.1.4", depths=depths)
    assert written(hart, MCTRCONTROL, 0) >> 16 == low
    assert written(hart, MCTRCONTROL, 0xF << 16) >> 16 == high
    codes = {16: 0b0000, 32: 0b0001, 64: 0b0011, 128: 0b0111, 256: 0b1111}
    for depth in depths:
        assert written(hart, MCTRCONTROL, codes[depth] << 16) >> 16 == codes[depth]
        assert hart.ctr is not None
        assert hart.ctr.recorder.buffer.depth == depth


# -- status


@pytest.mark.parametrize("depth", [16, 256])
def test_the_status_registers(depth: int) -> None:
    ratified = hart_with_ctr(depths=(depth,))
    assert written(ratified, SCTRSTATUS, ALL) == 1 << 31 | depth - 1
    assert written(ratified, SCTRSTATUS, 5) == 5
    draft = hart_with_ctr("0.1.4", depths=(depth,))
    assert written(draft, MCTRSTATUS, ALL) == 1 << 15 | 1 << 14 | depth - 1
    assert written(draft, MCTRSTATUS, 5) == 5


def test_sctrstatus_of_the_draft_is_mctrstatus() -> None:
    _, all_of = registers("0.1.4")
    all_of.by_number[DRAFT_SCTRSTATUS].write(1 << 15 | 3)
    assert all_of.by_number[MCTRSTATUS].read() == 1 << 15 | 3


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


# -- what cannot be built


@pytest.mark.parametrize(
    ("version", "built", "said"),
    [
        ("0.9", {}, "there is no version 0.9"),
        ("1.0", {"depths": ()}, "depths are some of 16, 32, 64, 128, 256"),
        ("1.0", {"depths": (32, 16)}, "ascending"),
        ("0.1.4", {"depths": (16, 64)}, "consecutive"),
        ("1.0", {"absent": frozenset({"BPFRZ"})}, "BPFRZ is none of the fields it may lack"),
        ("1.0", {"absent": frozenset({"INDJUMPINH"})}, "INDJUMPINH is none"),
        ("1.0", {"absent": frozenset({"MTE"})}, "MTE, STE are there together or not at all"),
        ("0.1.4", {"absent": frozenset({"STE"})}, "STE is none"),  # without S mode there is none
        ("0.1.4", {"absent": frozenset({"ETEN"})}, "ETEN, MTE are there together"),
        ("1.0", {"exponent_bits": 5}, "CCE has 0 to 4 bits, not 5"),
    ],
)
def test_what_the_documents_forbid_cannot_be_built(version: str, built: dict[str, object], said: str) -> None:
    with pytest.raises(CtrNotBuildable, match=said):
        CtrBuild(version, **built)  # type: ignore[arg-type]
