"""What register values mean, bit by bit as the documents have them."""

import pytest

from rvtrace_gdb.controlregs.ctr.entries import RECORDABLE, TransferType
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues, modes_of, settings

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
BY_DEFAULT = frozenset(RECORDABLE) - {TransferType.NOT_TAKEN_BRANCH}
M, S = 3, 1
MISA_MU, MISA_MSU, MISA_H = 1 << 20, 1 << 20 | 1 << 18, 1 << 20 | 1 << 18 | 1 << 7


def in_force(
    version: str,
    control: int = 7,
    vs_control: int = 0,
    status: int = 0,
    privilege: int | None = M,
    misa: int | None = None,
) -> CtrRegisterValues:
    return CtrRegisterValues("ctr0", version, 64, 16, control, vs_control, status, None, privilege, misa)


@pytest.mark.parametrize(
    ("version", "control", "modes"),
    [
        ("1.0", 0b100, "m"), ("1.0", 0b010, "s"), ("1.0", 0b001, "u"), ("1.0", 0, ""),
        ("0.1.4", 0b001, "m"), ("0.1.4", 0b010, "s"), ("0.1.4", 0b100, "u"), ("0.1.4", 0xF0000, ""),
    ],
)  # fmt: skip
def test_modes(version: str, control: int, modes: str) -> None:
    assert settings(in_force(version, control)).modes == frozenset(modes)


@pytest.mark.parametrize(
    ("version", "vs_control", "modes"),
    [("1.0", 2, {"vs"}), ("1.0", 1, {"vu"}), ("0.1.4", 2, {"vs"}), ("0.1.4", 4, {"vu"})],
)
def test_modes_of_the_guest(version: str, vs_control: int, modes: set[str]) -> None:
    assert settings(in_force(version, 0, vs_control)).modes == modes


@VERSION
@pytest.mark.parametrize("kind", RECORDABLE, ids=lambda kind: str(kind.name.lower()))
def test_filters(version: str, kind: TransferType) -> None:
    found = settings(in_force(version, 7 | 1 << 32 + kind))
    if kind == 4:
        assert (found.not_taken, found.inhibited, found.kinds) == (True, frozenset(), BY_DEFAULT | {kind})
    else:
        assert (found.not_taken, found.inhibited) == (False, frozenset({kind}))
        assert found.kinds == BY_DEFAULT - {kind}


@pytest.mark.parametrize(("version", "bit"), [("1.0", 7), ("0.1.4", 10)])
def test_ras_emulation(version: str, bit: int) -> None:
    """Calls are recorded and swaps, whatever the filters say."""
    found = settings(in_force(version, 7 | 1 << bit | 1 << 41))
    assert found.ras and {int(kind) for kind in found.kinds} == {8, 9, 12} and found.inhibited == {9}
    assert not settings(in_force(version)).ras


@VERSION
def test_nothing_is_recorded_without_a_mode(version: str) -> None:
    """A program that has switched recording off has often cleared the filters as well: they say nothing of before."""
    for control in (0, 1 << 33, 1 << (7 if version == "1.0" else 10)):
        assert settings(in_force(version, control)).kinds == frozenset()


@VERSION
def test_freezing(version: str) -> None:
    assert settings(in_force(version, 1 << 11)).freeze_breakpoint and settings(in_force(version, 1 << 12)).freeze_lcofi
    plain = settings(in_force(version))
    assert not (plain.freeze_breakpoint or plain.freeze_lcofi)


@pytest.mark.parametrize(
    ("version", "control", "vs_control", "external"),
    [
        ("1.0", 1 << 9, 0, {"m"}), ("1.0", 1 << 8, 0, {"s"}), ("1.0", 0, 1 << 8, {"vs"}),
        ("0.1.4", 1 << 8, 0, set()), ("0.1.4", 1 << 8 | 1 << 38, 0, {"m"}), ("0.1.4", 1 << 9 | 1 << 38, 0, {"s"}),
        ("0.1.4", 1 << 38, 1 << 9, set()), ("0.1.4", 0, 1 << 9 | 1 << 38, {"vs"}),
    ],
)  # fmt: skip
def test_external_traps(version: str, control: int, vs_control: int, external: set[str]) -> None:
    assert settings(in_force(version, control, vs_control)).external == external


def test_status() -> None:
    """1.0: WRPTR 7:0, FROZEN 31; the draft: WRPTR 7:0, WRAP 14, FROZEN 15."""
    found = settings(in_force("1.0", status=0x8000_0025))
    assert (found.write_pointer, found.frozen, found.wrapped) == (0x25, True, None)
    found = settings(in_force("0.1.4", status=0x4025))
    assert (found.write_pointer, found.frozen, found.wrapped) == (0x25, False, True)
    found = settings(in_force("0.1.4", status=0x8000))
    assert (found.write_pointer, found.frozen, found.wrapped) == (0, True, False)


def test_custom_extensions() -> None:
    assert settings(in_force("1.0", 7 | 0xA << 60)).custom == 0xA
    assert settings(in_force("0.1.4", 7 | 0xA << 60)).custom == 0


@VERSION
def test_the_guest_s_register_counts_while_v_is_1(version: str) -> None:
    guest = 0b111 & ~(4 if version == "1.0" else 1) | 1 << 33
    for privilege in (4, 5):
        assert settings(in_force(version, 0, guest, privilege=privilege)).kinds == BY_DEFAULT - {1}
    assert settings(in_force(version, 0, guest, privilege=S)).kinds == BY_DEFAULT


@VERSION
@pytest.mark.parametrize("privilege", [0, 1, 3, None])
@pytest.mark.parametrize("frozen", [False, True], ids=["", "frozen"])
def test_whether_it_recorded_to_the_end(version: str, privilege: int | None, frozen: bool) -> None:
    status = (1 << (31 if version == "1.0" else 15)) * frozen
    only_m = 4 if version == "1.0" else 1
    found = settings(in_force(version, only_m, status=status, privilege=privilege))
    assert found.recording_at_end == (privilege == M and not frozen)


@pytest.mark.parametrize(
    ("misa", "modes"),
    [(None, "m s u"), (0, "m s u"), (1, "m"), (MISA_MU, "m u"), (MISA_MSU, "m s u"), (MISA_H, "m s u vs vu")],
)
def test_modes_by_misa(misa: int | None, modes: str) -> None:
    assert modes_of(misa) == set(modes.split())


@VERSION
def test_what_may_be_hidden(version: str) -> None:
    """Nothing, where every mode there is is recorded, and nothing froze it or might have."""
    m_and_u = 5
    assert not settings(in_force(version, 7)).hidden
    assert not settings(in_force(version, m_and_u, misa=MISA_MU)).hidden
    assert settings(in_force(version, m_and_u)).hidden
    assert settings(in_force(version, 7, misa=MISA_H)).hidden
    assert not settings(in_force(version, 7, 7, misa=MISA_H)).hidden
    assert settings(in_force(version, 0)).hidden
    assert settings(in_force(version, 7, status=0x8000_8000)).hidden
    for freeze in (11, 12):
        assert settings(in_force(version, 7 | 1 << freeze)).hidden
        assert settings(in_force(version, 7, 1 << freeze)).hidden
