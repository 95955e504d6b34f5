"""What the CTR recorder records of transfers between modes, by type, and when it freezes: each table of both documents.

Expectations: CTR 1.0, "Behavior" ("Privilege Mode Transitions", "Virtualization Mode Transitions", "External Traps",
"Transfer Type Filtering", "Freeze"); draft 0.1.4, chapter 5. Table cells are written out here.
"""

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.transport.simulated.ctr.recorder import Mode
from tests.transport.simulated.ctr.recorders import (
    BPFRZ,
    CORSWAPINH,
    DIRCALLINH,
    DIRJMPINH,
    DIRLJMPINH,
    ETEN,
    EXCINH,
    INDCALLINH,
    INDJMPINH,
    INDLJMPINH,
    INTRINH,
    LCOFIFRZ,
    NTBREN,
    RASEMU,
    RETINH,
    SOURCE,
    TARGET,
    TKBRINH,
    TRETINH,
    VERSIONS,
    XTE,
    jump,
    recorder,
    records,
    trap,
    trap_return,
)

EXCEPTION, INTERRUPT, TRAP_RETURN = 1, 2, 3
U, S, M, VU, VS = Mode.U, Mode.S, Mode.M, Mode.VU, Mode.VS
TRAPS = [(U, S), (U, M), (S, M), (VU, VS), (VU, S), (VU, M), (VS, S), (VS, M)]  # all that change the mode

both = pytest.mark.parametrize("version", VERSIONS)


# -- "Trap and Trap Return Recording", the table of both documents


@both
@pytest.mark.parametrize(("source", "target"), TRAPS)
@pytest.mark.parametrize("interrupt", [False, True], ids=["exception", "interrupt"])
def test_traps_between_modes(version: str, source: Mode, target: Mode, interrupt: bool) -> None:
    type = INTERRUPT if interrupt else EXCEPTION
    expected = {
        (True, True): [(SOURCE, TARGET, type)],
        (True, False): [],  # an external trap, which is not recorded by default
        (False, True): [(0, TARGET, type)],
        (False, False): [],
    }
    for (source_enabled, target_enabled), cell in expected.items():
        enabled = [source] * source_enabled + [target] * target_enabled
        made = recorder(version, *enabled)
        made.transfer(trap(source, target, interrupt=interrupt))
        assert records(made) == cell
        assert made.mode is target


@both
@pytest.mark.parametrize(("target", "source"), TRAPS)
def test_trap_returns_between_modes(version: str, source: Mode, target: Mode) -> None:
    expected = {
        (True, True): [(SOURCE, TARGET, TRAP_RETURN)],
        (True, False): [(SOURCE, 0, TRAP_RETURN)],
        (False, True): [],
        (False, False): [],
    }
    for (source_enabled, target_enabled), cell in expected.items():
        enabled = [source] * source_enabled + [target] * target_enabled
        made = recorder(version, *enabled)
        made.transfer(trap_return(source, target))
        assert records(made) == cell
        assert made.mode is target


@both
@pytest.mark.parametrize("mode", Mode)
def test_a_trap_within_a_mode_is_recorded_where_the_mode_is(version: str, mode: Mode) -> None:
    made = recorder(version, mode)
    made.transfer(trap(mode, mode))
    assert records(made) == [(SOURCE, TARGET, EXCEPTION)]
    others = recorder(version, *set(Mode) - {mode} - ({S, VS} if mode in (S, VS) else set()))
    others.transfer(trap(mode, mode))
    assert records(others) == []


# -- "External Traps"

RATIFIED_EXTERNAL = {  # "External Trap Enable Requirements"
    (U, S): {S},
    (U, M): {M, S},
    (S, M): {M},
    (VU, VS): {VS},
    (VU, S): {S, VS},
    (VU, M): {M, S, VS},
    (VS, S): {S},
    (VS, M): {M, S},
}


@pytest.mark.parametrize(("source", "target"), TRAPS)
def test_external_traps_need_the_target_and_all_modes_between(source: Mode, target: Mode) -> None:
    """1.0: any enable missing, and nothing is recorded; those of other modes do not matter."""
    for subset in range(8):
        given = {mode for bit, mode in enumerate((M, S, VS)) if subset >> bit & 1}
        control = sum(XTE["1.0"][mode] for mode in given - {VS})
        made = recorder("1.0", source, control=control, vs_control=XTE["1.0"][VS] if VS in given else 0)
        made.transfer(trap(source, target))
        recorded = RATIFIED_EXTERNAL[source, target] <= given
        assert records(made) == ([(SOURCE, 0, EXCEPTION)] if recorded else []), given


@pytest.mark.parametrize(("source", "target"), TRAPS)
def test_external_traps_of_the_draft_need_eten_and_the_target(source: Mode, target: Mode) -> None:
    """0.1.4, 5.2.1: ETEN of the source's control register, xTE of the target mode, which VS mode has in its own."""
    for subset in range(16):
        given = {mode for bit, mode in enumerate((M, S, VS)) if subset >> bit & 1}
        eten = ETEN if subset >> 3 else 0
        control = sum(XTE["0.1.4"][mode] for mode in given - {VS}) | (0 if source.virtual else eten)
        vs_control = (XTE["0.1.4"][VS] if VS in given else 0) | (eten if source.virtual else 0)
        made = recorder("0.1.4", source, control=control, vs_control=vs_control)
        made.transfer(trap(source, target))
        assert records(made) == ([(SOURCE, 0, EXCEPTION)] if eten and target in given else []), (given, eten)


@both
@pytest.mark.parametrize("interrupt", [False, True], ids=["exception", "interrupt"])
def test_external_traps_do_not_depend_on_the_filters(version: str, interrupt: bool) -> None:
    control = XTE[version][M] | XTE[version][S] | EXCINH | INTRINH | (ETEN if version == "0.1.4" else 0)
    made = recorder(version, U, control=control)
    made.transfer(trap(U, M, interrupt=interrupt))
    assert records(made) == [(SOURCE, 0, INTERRUPT if interrupt else EXCEPTION)]


@both
def test_no_external_traps_in_ras_emulation(version: str) -> None:
    control = XTE[version][M] | XTE[version][S] | RASEMU[version] | (ETEN if version == "0.1.4" else 0)
    made = recorder(version, U, control=control)
    made.transfer(trap(U, M))
    assert records(made) == []


@both
def test_xte_does_not_matter_where_the_target_is_enabled(version: str) -> None:
    made = recorder(version, U, M)
    made.transfer(trap(U, M))
    assert records(made) == [(SOURCE, TARGET, EXCEPTION)]


# -- "Transfer Type Filtering"

FILTERS = {
    1: EXCINH, 2: INTRINH, 3: TRETINH, 5: TKBRINH, 8: INDCALLINH, 9: DIRCALLINH, 10: INDJMPINH, 11: DIRJMPINH,
    12: CORSWAPINH, 13: RETINH, 14: INDLJMPINH, 15: DIRLJMPINH,
}  # fmt: skip


def of_type(type: int) -> list[tuple[int, int, int]]:
    return [(SOURCE, TARGET, type)]


@both
@pytest.mark.parametrize("type", FILTERS)
def test_each_filter_inhibits_its_type_and_no_other(version: str, type: int) -> None:
    for filtered, bit in FILTERS.items():
        made = recorder(version, M, control=bit)
        made.transfer(jump(TransferType(type)))
        assert records(made) == ([] if filtered == type else of_type(type))


@both
def test_not_taken_branches_are_recorded_when_asked_for(version: str) -> None:
    branch = jump(TransferType.NOT_TAKEN_BRANCH)
    for control, expected in ((0, []), (NTBREN, of_type(4)), (NTBREN | TKBRINH, of_type(4))):
        made = recorder(version, M, control=control)
        made.transfer(branch)
        assert records(made) == expected


@both
def test_filters_apply_to_traps_that_are_recorded_in_part(version: str) -> None:
    made = recorder(version, M, control=EXCINH | TRETINH)
    made.transfer(trap(U, M))
    made.transfer(trap_return(M, U))
    assert records(made) == []


@both
@pytest.mark.parametrize("mode", Mode)
def test_a_mode_is_configured_by_the_control_register_of_its_v(version: str, mode: Mode) -> None:
    for control, vs_control in ((DIRJMPINH, 0), (0, DIRJMPINH)):
        made = recorder(version, *Mode, control=control, vs_control=vs_control)
        made.transfer(jump(mode=mode))
        assert bool(records(made)) == (not (vs_control if mode.virtual else control))


# -- "Virtualization Mode Transitions" (1.0; the draft only says which register is active)


def test_between_v0_and_v1_the_filters_are_those_of_the_guest() -> None:
    """1.0: "For all other xctrctl fields, the value in vsctrctl is used", whichever way the transfer goes."""
    for transfer in (trap(VU, S), trap(VS, M), trap_return(S, VU), trap_return(M, VS)):
        both_ways = EXCINH | TRETINH
        made = recorder("1.0", *Mode, control=both_ways)
        made.transfer(transfer)
        assert len(records(made)) == 1
        made = recorder("1.0", *Mode, vs_control=both_ways)
        made.transfer(transfer)
        assert records(made) == []


def test_between_v0_and_v1_the_draft_goes_by_the_mode_that_is_left() -> None:
    for transfer in (trap(VU, S), trap(VS, M), trap_return(S, VU), trap_return(M, VS)):
        bits, virtual = EXCINH | TRETINH, transfer.source_mode.virtual
        for control, vs_control in ((bits, 0), (0, bits)):
            made = recorder("0.1.4", *Mode, control=control, vs_control=vs_control)
            made.transfer(transfer)
            assert bool(records(made)) == (not (vs_control if virtual else control))


# -- "Freeze"

FREEZES = [(BPFRZ, False, 3), (LCOFIFRZ, True, 13)]
freezing = pytest.mark.parametrize(("bit", "interrupt", "cause"), FREEZES, ids=["breakpoint", "lcofi"])


@both
@freezing
def test_freezing_traps_are_not_recorded_and_nothing_after_them(
    version: str, bit: int, interrupt: bool, cause: int
) -> None:
    made = recorder(version, M, control=bit)
    made.transfer(jump())
    made.transfer(trap(M, M, interrupt=interrupt, cause=cause))
    made.transfer(jump())
    assert made.frozen
    assert records(made) == of_type(11)
    made.frozen = False
    made.transfer(jump())
    assert len(records(made)) == 2


@both
@freezing
def test_other_traps_do_not_freeze(version: str, bit: int, interrupt: bool, cause: int) -> None:
    made = recorder(version, M, control=bit)
    for other in range(16):
        if other != cause:
            made.transfer(trap(M, M, interrupt=interrupt, cause=other))
        made.transfer(trap(M, M, interrupt=not interrupt, cause=other))
    assert not made.frozen
    assert len(records(made)) == 16


@freezing
@pytest.mark.parametrize(("source", "target"), [*TRAPS, *((mode, mode) for mode in Mode)])
def test_which_register_freezes(bit: int, interrupt: bool, cause: int, source: Mode, target: Mode) -> None:
    """1.0: sctrctl for traps to M and S mode, vsctrctl for those to VS mode. Draft: the active one, of the source."""
    if target in (U, VU):
        return
    for version in VERSIONS:
        guest = target.virtual if version == "1.0" else source.virtual
        for control, vs_control in ((bit, 0), (0, bit)):
            made = recorder(version, control=control, vs_control=vs_control)
            made.transfer(trap(source, target, interrupt=interrupt, cause=cause))
            assert made.frozen == bool(vs_control if guest else control), version


# -- misprediction, and what a recorder lacks


@both
def test_mispredictions_are_kept_where_there_is_misp(version: str) -> None:
    wrong = jump(target=TARGET)._replace(mispredicted=True)
    for absent, expected in ((frozenset(), TARGET | 1), (frozenset({"MISP"}), TARGET)):
        made = recorder(version, M, absent=absent)
        made.transfer(wrong)
        assert made.buffer.read(0).target == expected


@both
def test_without_type_the_field_reads_zero(version: str) -> None:
    made = recorder(version, M, absent=frozenset({"TYPE"}))
    made.transfer(jump())
    assert made.buffer.read(0).data & 0xF == 0
