"""The CTR CSRs of the simulated hart: which there are, and their bits.

Expectations: CTR 1.0, "CSRs"; draft 0.1.4, chapter 2 and chapter 6, "Discovery". Bits are written out from them.
"""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild, CtrNotBuildable
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.ctr.csrs import (
    ALL,
    DRAFT_M_AND_U,
    DRAFT_SCTRSTATUS,
    FILTERS,
    MCTRCONTROL,
    MCTRCONTROLH,
    MCTRCTL,
    MCTRSTATUS,
    MISELECT,
    RATIFIED,
    SCTRCONTROL,
    SCTRCONTROLH,
    SCTRCTL,
    SCTRDEPTH,
    SCTRSTATUS,
    SIREG,
    SIREG2,
    SIREG3,
    SISELECT,
    VSCTRCONTROL,
    VSCTRCONTROLH,
    VSCTRCTL,
    accessible,
    hart_with_ctr,
    registers,
    written,
)
from tests.transport.simulated.hart.encoded_code import BASE, RAM_SIZE

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


# -- what cannot be built


@pytest.mark.parametrize(
    ("version", "built", "said"),
    [
        ("0.9", {}, "there is no version 0.9"),
        ("1.0", {"depths": ()}, "depths are some of 16, 32, 64, 128, 256"),
        ("1.0", {"depths": (32, 16)}, "ascending"),
        ("0.1.4", {"depths": (16, 64)}, "consecutive"),
        ("1.0", {"absent": frozenset({"BPFRZ"})}, "BPFRZ is not one of the fields it may lack"),
        ("1.0", {"absent": frozenset({"INDJUMPINH"})}, "INDJUMPINH is not one"),
        ("1.0", {"absent": frozenset({"MTE"})}, "MTE, STE are there together or not at all"),
        ("0.1.4", {"absent": frozenset({"STE"})}, "STE is not one"),  # without S mode there is none
        ("0.1.4", {"absent": frozenset({"ETEN"})}, "ETEN, MTE are there together"),
        ("1.0", {"exponent_bits": 5}, "CCE has 0 to 4 bits, not 5"),
    ],
)
def test_what_the_documents_forbid_cannot_be_built(version: str, built: dict[str, object], said: str) -> None:
    with pytest.raises(CtrNotBuildable, match=said):
        CtrBuild(version, **built)  # type: ignore[arg-type]
