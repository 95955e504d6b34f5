"""Starting over a register file written from the documents (`ctr_registers`)."""

import pytest

from rvtrace_gdb.controlregs.ctr.entries import RECORDABLE, TransferType
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import DepthRefused, NothingRecorded
from rvtrace_gdb.support.errors import Cancelled
from tests.controlregs.ctr.hart_model import CtrHart
from tests.controlregs.ctr.rig import INHIBIT_NOT_CALLS, MODES, NOT_CALLS, VERSION, XLEN, begin, changed, junk


@VERSION
def test_everything_is_recorded_by_default(version: str) -> None:
    hart = CtrHart(version)
    started = begin(hart)
    assert hart.control == 7 and started.notes == ()
    assert started.in_force.control & 0xFFFF == 7 and started.in_force.depth == hart.depth == 256
    assert (started.in_force.name, started.in_force.version, started.in_force.xlen) == ("ctr0", version, 64)
    assert (started.in_force.pc, started.in_force.privilege) == (0x8000_0000, 3)
    assert started.in_force.misa == 1 << 18 | 1 << 20


@VERSION
@pytest.mark.parametrize("modes", ["m", "s", "u", "m u"])
def test_modes(version: str, modes: str) -> None:
    hart = CtrHart(version)
    started = begin(hart, modes=frozenset(modes.split()))
    assert hart.control == sum(MODES[version][mode] for mode in modes.split()) and not started.notes


@VERSION
def test_freezing_and_stack(version: str) -> None:
    """RASEMU 7, BPFRZ 11, LCOFIFRZ 12; RASEMU is 10 in the draft."""
    hart = CtrHart(version)
    begin(hart, freeze_breakpoint=True)
    assert hart.control == 7 | 1 << 11
    begin(hart, freeze_lcofi=True)
    assert hart.control == 7 | 1 << 12
    begin(hart, ras=True)
    assert hart.control == 7 | 1 << (7 if version == "1.0" else 10)


@VERSION
@pytest.mark.parametrize("kind", RECORDABLE, ids=lambda kind: str(kind.name.lower()))
def test_each_filter(version: str, kind: TransferType) -> None:
    """Bit 32 + TYPE; for not-taken branches it enables."""
    hart = CtrHart(version)
    begin(hart, inhibit=frozenset({kind}))
    expected = 0 if kind == 4 else 1 << 32 + kind
    assert hart.control == 7 | expected
    begin(hart, not_taken=kind == 4)
    assert hart.control == 7 | (1 << 36 if kind == 4 else 0)


@VERSION
def test_external_traps(version: str) -> None:
    """MTE 9 and STE 8 in 1.0; MTE 8, STE 9 and ETEN 38 in the draft, without which they mean nothing."""
    hart = CtrHart(version)
    started = begin(hart, modes=frozenset({"u"}), external=frozenset({"m", "s"}))
    assert hart.control == (1 | 3 << 8 if version == "1.0" else 4 | 3 << 8 | 1 << 38) and not started.notes


def test_external_traps_need_the_modes_in_between() -> None:
    """1.0, "External Trap Enable Requirements"."""
    u = frozenset({"u"})
    started = begin(CtrHart(), modes=u, external=frozenset({"m"}))
    assert started.notes == ("external traps from u to m mode are recorded only together with external s",)
    assert not begin(CtrHart("0.1.4"), modes=u, external=frozenset({"m"})).notes
    assert not begin(CtrHart(), modes=frozenset({"s"}), external=frozenset({"m"})).notes
    guest = begin(CtrHart(hypervisor=True), modes=frozenset({"vu"}), external=frozenset({"m"}))
    assert guest.notes == ("external traps from vu to m mode are recorded only together with external s and vs",)


@VERSION
def test_the_array_is_empty_and_not_frozen_afterwards(version: str) -> None:
    hart = CtrHart(version)
    hart.code = hart.codes[-1]
    junk(hart)
    hart.frozen = True
    begin(hart)
    assert not any(any(entry) for entry in hart.array) and not hart.frozen


@VERSION
@XLEN
@pytest.mark.parametrize("depth", [16, 32, 64, 128, 256])
def test_depth(version: str, xlen: int, depth: int) -> None:
    hart = CtrHart(version, xlen)
    assert begin(hart, depth=depth).in_force.depth == hart.depth == depth


@VERSION
@pytest.mark.parametrize("entries", [(16,), (64,), (32, 64), (16, 32, 64, 128)], ids=str)
def test_the_greatest_depth_there_is(version: str, entries: tuple[int, ...]) -> None:
    codes = tuple(int(VERSIONS[version].depth_codes[n]) for n in entries)
    hart = CtrHart(version, codes=codes)
    assert begin(hart).in_force.depth == hart.depth == entries[-1]


@VERSION
@pytest.mark.parametrize("wanted", [256, 16, 48, 0])
def test_a_depth_that_is_not_there(version: str, wanted: int) -> None:
    codes = tuple(int(VERSIONS[version].depth_codes[n]) for n in (32, 64))
    hart = CtrHart(version, codes=codes)
    hart.control, hart.frozen = 3, True
    before = changed(hart)
    with pytest.raises(DepthRefused, match=rf"depth of {wanted}; this hart has 32, 64") as error:
        begin(hart, depth=wanted)
    assert error.value.supported == (32, 64)
    assert changed(hart) == before and hart.user_state() == CtrHart(version).user_state()


@VERSION
def test_wishes_that_are_not_granted(version: str) -> None:
    """Only M, S and U can be written: one line for each wish, one for all filters."""
    hart = CtrHart(version, writable=7)
    started = begin(
        hart,
        inhibit=frozenset({TransferType.EXCEPTION, TransferType.FUNCTION_RETURN}),
        not_taken=True,
        ras=True,
        freeze_breakpoint=True,
        freeze_lcofi=True,
        external=frozenset({"m"}),
        modes=frozenset({"m", "s"}),
    )
    name = "mctrctl" if version == "1.0" else "mctrcontrol"
    eten = () if version == "1.0" else (
        f"this hart has no {name}.ETEN: it cannot record traps from an enabled to a disabled mode, where xTE allows",
    )  # fmt: skip
    condition = "" if version == "1.0" else "with ETEN: "
    assert sorted(started.notes) == sorted((
        f"this hart has no {name}.MTE: it cannot {condition}record traps to M mode though M=0",
        *eten,
        f"this hart has no {name}.RASEMU: it cannot keep a stack of calls (RAS emulation)",
        f"this hart has no {name}.BPFRZ: it cannot set FROZEN on a breakpoint exception",
        f"this hart has no {name}.LCOFIFRZ: it cannot set FROZEN on a local counter overflow interrupt",
        f"this hart has no {name}.EXCINH, NTBREN, RETINH: "
        "it cannot omit exceptions, record not taken branches, omit function returns",
    ))  # fmt: skip
    assert started.in_force.control & 0xFFFF == MODES[version]["m"] | MODES[version]["s"]


def test_modes_that_are_not_there() -> None:
    hart = CtrHart("0.1.4", s_mode=False)
    assert not begin(hart).notes and hart.control == 0b101
    hart = CtrHart("0.1.4", s_mode=False)
    started = begin(hart, modes=frozenset({"m", "s", "vs"}))
    assert started.notes == (
        "this hart has no vsctrcontrol: it has no VS and VU mode",
        "this hart has no mctrcontrol.S: it cannot record in S mode",
    )
    before = changed(hart)
    with pytest.raises(NothingRecorded, match=r"mctrcontrol \(0x381\) reads 0xf0000 .*: no mode would be recorded"):
        begin(hart, modes=frozenset({"s"}))
    assert changed(hart) == before


def test_filters_of_1_0_cannot_be_reached_on_rv32() -> None:
    hart = CtrHart(xlen=32)
    started = begin(hart, inhibit=frozenset({TransferType.DIRECT_JUMP}), freeze_breakpoint=True)
    assert started.notes == ("version 1.0 has on RV32 no mctrctl.DIRJMPINH: it cannot omit direct jumps",)
    assert hart.control == 7 | 1 << 11 and started.in_force.xlen == 32


def test_filters_of_the_draft_on_rv32() -> None:
    hart = CtrHart("0.1.4", xlen=32, hypervisor=True)
    started = begin(hart, inhibit=NOT_CALLS, external=frozenset({"m", "s", "vs"}))
    assert not started.notes
    assert hart.control == 7 | 3 << 8 | 1 << 38 | INHIBIT_NOT_CALLS == started.in_force.control & ~(15 << 16)
    assert hart.vs_control == 6 | 1 << 9 | 1 << 38 | INHIBIT_NOT_CALLS == started.in_force.vs_control & ~(15 << 16)


@VERSION
def test_the_guest_s_control_register(version: str) -> None:
    hart = CtrHart(version, hypervisor=True)
    begin(hart, inhibit=NOT_CALLS, external=frozenset({"vs"}), modes=frozenset({"vs", "vu", "m"}))
    assert hart.vs_control & 0xFFFF == (0b11 | 1 << 8 if version == "1.0" else 0b110 | 1 << 9)
    assert hart.vs_control & INHIBIT_NOT_CALLS == INHIBIT_NOT_CALLS
    begin(hart, modes=frozenset({"m"}))
    assert hart.vs_control == 0


@VERSION
def test_ras_emulation_ignores_filters(version: str) -> None:
    started = begin(CtrHart(version), ras=True, inhibit=NOT_CALLS)
    assert started.notes == ("RAS emulation ignores filters and external traps: calls are recorded until they return",)


@VERSION
def test_interrupted_start(version: str) -> None:
    """Ctrl-C while the array is cleared: nothing but the entries has changed."""
    hart = CtrHart(version)
    hart.control, hart.frozen = 5, True
    before, state = changed(hart), hart.user_state()

    def impatient(label: str, done: int, total: int | None = None) -> None:
        if done >= 32:
            raise Cancelled()

    with pytest.raises(Cancelled):
        begin(hart, impatient, depth=64)
    assert changed(hart) == before and hart.user_state() == state
