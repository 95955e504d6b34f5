"""Stubs that lie: writes that are accepted and do nothing, writes and reads that are refused, values that are old.

Whatever they do, a procedure ends in one line that names the register, or what it reports is true.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlregs.csr_access import CsrAccess, Register
from controlregs.ctr.errors import (
    CtrError,
    NotRestored,
    RegisterRefused,
    ReservedDepth,
    StaleEntries,
    WriteIneffective,
)
from controlregs.ctr.procedures import clear, read, start, status, stop
from controlregs.ctr.request import CtrRequest
from controlregs.ctr.versions import VERSIONS, CtrVersion
from controlregs.errors import HartRuns
from support.errors import RvtraceError
from tests.controlregs.ctr_registers import CtrHart, Lies

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
CONTROL = {"1.0": 0x34E, "0.1.4": 0x381}
STATUS = {"1.0": 0x14F, "0.1.4": 0x383}
SELECT = {"1.0": 0x150, "0.1.4": 0x350}
NAMES = {0x34E: "mctrctl", 0x381: "mctrcontrol", 0x14F: "sctrstatus", 0x383: "mctrstatus", 0x15F: "sctrdepth",
         0x150: "siselect", 0x350: "miselect", 0x151: "sireg", 0x351: "mireg", 0x152: "sireg2", 0x352: "mireg2",
         0x153: "sireg3", 0x353: "mireg3", 0x24E: "vsctrctl", 0x281: "vsctrcontrol"}  # fmt: skip
Procedure = Callable[[CsrAccess, CtrVersion], object]
PROCEDURES: dict[str, Procedure] = {
    "start": lambda access, version: start(access, version, CtrRequest(depth=32), "ctr0"),
    "stop": lambda access, version: stop(access, version, None),
    "clear": clear,
    "status": lambda access, version: status(access, version, "ctr0"),
    "read": lambda access, version: read(access, version, "ctr0"),
}


def hart_with(version: str, **lies: object) -> CtrHart:
    """One that has 20 records of 64."""
    hart = CtrHart(version, hypervisor=True)
    hart.code, hart.control = hart.codes[2], 7
    for n in range(20):
        hart.record(0x1000 + 4 * n, 0x2000 + 4 * n, 9)
    hart.lies = Lies(**lies)  # type: ignore[arg-type]
    return hart


def begin(hart: CtrHart, **wishes: object) -> object:
    return start(hart, VERSIONS[hart.version], CtrRequest(**wishes), "ctr0")  # type: ignore[arg-type]


@VERSION
def test_a_control_register_that_ignores_writes(version: str) -> None:
    """It stands at all modes, so that reading it back looks fine: recording is switched off first, which does not."""
    hart = hart_with(version, ignored=frozenset({CONTROL[version]}))
    with pytest.raises(CtrError, match=NAMES[CONTROL[version]]):
        begin(hart)
    hart = hart_with(version, ignored=frozenset({CONTROL[version]}))
    hart.control = 0
    with pytest.raises(WriteIneffective, match=NAMES[CONTROL[version]]):
        begin(hart, depth=64)


@VERSION
def test_recording_that_cannot_be_switched_off(version: str) -> None:
    hart = hart_with(version, ignored=frozenset({CONTROL[version]}))
    with pytest.raises(WriteIneffective, match=NAMES[CONTROL[version]]):
        stop(hart, VERSIONS[version], None)


def test_the_upper_half_is_refused() -> None:
    """Filters would be guesses then."""
    hart = CtrHart("0.1.4", xlen=32, s_mode=False, lies=Lies(refused=frozenset({0x382})))
    with pytest.raises(RegisterRefused, match=r"mctrcontrolh \(0x382\) cannot be read"):
        stop(hart, VERSIONS["0.1.4"], None)


def test_a_depth_that_always_reads_as_reserved() -> None:
    hart = CtrHart(lies=Lies(stale=frozenset({0x15F}), first={0x15F: 6}))
    with pytest.raises(ReservedDepth):
        begin(hart)


def test_a_bit_that_comes_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody asked for is no wish that was not granted."""
    hart = CtrHart()
    plain = hart._write_control
    monkeypatch.setattr(hart, "_write_control", lambda n, value, reach: plain(n, value | (value & 4) << 5, reach))
    with pytest.raises(WriteIneffective, match=r"mctrctl \(0x34e\) reads 0x87 after 0x7 was written"):
        begin(hart)
    assert hart.control == 0


@VERSION
def test_a_status_that_ignores_writes(version: str) -> None:
    hart = hart_with(version, ignored=frozenset({STATUS[version]}))
    hart.frozen = True
    if version == "0.1.4":  # CLR clears FROZEN, too
        assert begin(hart)
        return
    with pytest.raises(WriteIneffective, match=r"sctrstatus \(0x14f\) reads 0x8000001. after 0x1. was written"):
        begin(hart)


def test_a_depth_that_ignores_writes() -> None:
    hart = hart_with("1.0", ignored=frozenset({0x15F}))
    with pytest.raises(CtrError, match="sctrdepth does not take a depth of 128; this hart has 64"):
        begin(hart, depth=128)
    assert begin(hart) and hart.depth == 64  # hard-wired: that is what there is


@VERSION
@pytest.mark.parametrize("procedure", ["start", "clear", "status", "read"])
def test_a_select_that_ignores_writes(version: str, procedure: str) -> None:
    """QEMU answers OK and writes nothing where the hart's mode may not."""
    hart = hart_with(version, ignored=frozenset({SELECT[version]}))
    with pytest.raises(WriteIneffective, match=rf"{NAMES[SELECT[version]]} \({SELECT[version]:#x}\) reads 0x[57][57]"):
        PROCEDURES[procedure](hart, VERSIONS[version])


@VERSION
@pytest.mark.parametrize("procedure", ["start", "clear", "status", "read"])
def test_a_select_that_reads_as_before(version: str, procedure: str) -> None:
    """The write had its effect, but that cannot be seen."""
    hart = hart_with(version, stale=frozenset({SELECT[version]}))
    with pytest.raises(WriteIneffective, match=NAMES[SELECT[version]]):
        PROCEDURES[procedure](hart, VERSIONS[version])
    assert hart.user_state() == CtrHart(version).user_state()


@VERSION
def test_entries_that_do_not_follow_the_select(version: str) -> None:
    """OpenOCD behind gdb shows what was read before where an access fails: all entries look the same."""
    aliases = frozenset(SELECT[version] + n for n in (1, 2, 3))
    hart = hart_with(version, stale=aliases)
    with pytest.raises(StaleEntries, match=rf"does not follow {NAMES[SELECT[version]]}"):
        read(hart, VERSIONS[version], "ctr0")
    assert hart.user_state() == CtrHart(version).user_state()


@VERSION
@pytest.mark.parametrize("alias", [1, 2, 3], ids=["source", "target", "data"])
def test_entries_that_come_late(version: str, alias: int) -> None:
    """A cache between that is filled too early: each entry shows the one before."""
    hart = hart_with(version, late=frozenset({SELECT[version] + alias}))
    for n in range(64):
        hart.record(0x1000 + 4 * n, 0x2000 + 4 * n, 9 | n << 16)
    with pytest.raises(StaleEntries, match=rf"does not follow {NAMES[SELECT[version]]}"):
        read(hart, VERSIONS[version], "ctr0")
    assert hart.user_state() == CtrHart(version).user_state()


@VERSION
def test_a_loop_is_not_stale(version: str) -> None:
    hart = hart_with(version)
    for _ in range(64):
        hart.record(0x8000_0000, 0x8000_0000, 5)
    assert len(read(hart, VERSIONS[version], "ctr0")[1]) == 64


@VERSION
@pytest.mark.parametrize("alias", [1, 2, 3], ids=["source", "target", "data"])
def test_entries_that_cannot_be_cleared(version: str, alias: int) -> None:
    hart = hart_with(version, ignored=frozenset({SELECT[version] + alias}))
    if version == "0.1.4":  # the hart clears them itself
        clear(hart, VERSIONS[version])
        assert not any(any(entry) for entry in hart.array)
        return
    with pytest.raises(WriteIneffective, match=rf"{NAMES[SELECT[version] + alias]} .* of entry 0 reads 0x.* after 0x0"):
        clear(hart, VERSIONS[version])


def test_a_clear_bit_without_effect() -> None:
    """The entries are zeroed one by one then."""
    hart = hart_with("0.1.4")
    plain = hart._write_control

    def without_clear(number: int, value: int, reach: int) -> None:
        plain(number, value & ~(1 << 7), reach)

    hart._write_control = without_clear  # type: ignore[method-assign]
    clear(hart, VERSIONS["0.1.4"])
    assert not any(any(entry) for entry in hart.array)


@VERSION
@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("role", ["control", "status", "depth", "select"])
def test_a_register_that_is_refused(version: str, procedure: str, role: str) -> None:
    number = {"control": CONTROL, "status": STATUS, "depth": {"1.0": 0x15F, "0.1.4": 0x381}, "select": SELECT}[role]
    hart = CtrHart(version, s_mode=version == "1.0", lies=Lies(refused=frozenset({number[version]})))
    if role == "control" and version == "1.0":  # S mode's register is there still
        PROCEDURES[procedure](hart, VERSIONS[version])
        return
    with pytest.raises(RegisterRefused, match=rf"{NAMES[number[version]]} \(.*\) cannot be read \(test hart\)"):
        PROCEDURES[procedure](hart, VERSIONS[version])


@VERSION
@pytest.mark.parametrize("role", ["control", "select", "source", "virtual"])
def test_a_write_that_is_refused(version: str, role: str) -> None:
    guest = 0x24E if version == "1.0" else 0x281
    number = {"control": CONTROL[version], "select": SELECT[version], "source": SELECT[version] + 1, "virtual": guest}
    hart = hart_with(version, refuses_writes=frozenset({number[role]}))
    if role == "source" and version == "0.1.4":
        assert begin(hart)
        return
    with pytest.raises(CtrError, match=rf"{NAMES[number[role]]} .*cannot be written"):
        begin(hart)


@VERSION
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_hart_that_runs(version: str, procedure: str) -> None:
    hart = hart_with(version, runs_after=0)
    with pytest.raises(HartRuns, match=r"^test hart: the hart runs: stop it first \(`interrupt` or Ctrl-C\)$"):
        PROCEDURES[procedure](hart, VERSIONS[version])


@VERSION
def test_what_could_not_be_put_back_is_said(version: str) -> None:
    """The way to the hart is lost in the middle: both facts in one line."""
    hart = hart_with(version, dumb_after=20)
    with pytest.raises(NotRestored) as error:
        read(hart, VERSIONS[version], "ctr0")
    found, select = 0x55 if version == "1.0" else 0x77, SELECT[version]
    assert f"besides, {NAMES[select]} ({select:#x}) could not be put back to {found:#x}" in str(error.value)
    assert "cannot be" in str(error.value.first) and "\n" not in str(error.value)


@VERSION
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_cut_anywhere(version: str, procedure: str) -> None:
    """One line, wherever the way to the hart is lost."""
    lost = 0
    for after in range(0, 240, 3):
        hart = hart_with(version, dumb_after=after)
        try:
            PROCEDURES[procedure](hart, VERSIONS[version])
        except CtrError as error:
            assert str(error) and "\n" not in str(error)
            lost += 1
    assert lost > 2


REGISTERS = st.sampled_from([*NAMES, "priv"])
SOME = st.frozensets(REGISTERS, max_size=2)


@settings(max_examples=300)
@given(
    st.sampled_from(["1.0", "0.1.4"]),
    st.sampled_from(sorted(PROCEDURES)),
    SOME,
    SOME,
    SOME,
    SOME,
    st.sampled_from([0, 1, 3, 5]),
)
def test_any_lies(
    version: str,
    procedure: str,
    ignored: frozenset[Register],
    refused: frozenset[Register],
    refuses_writes: frozenset[Register],
    stale: frozenset[Register],
    priv: int,
) -> None:
    """An error of ours or a result; and if nothing was refused or ignored on the way back, the state is as found."""
    hart = hart_with(version, ignored=ignored, refused=refused, refuses_writes=refuses_writes, stale=stale)
    hart.priv = priv
    state = hart.user_state()
    clean = True
    try:
        PROCEDURES[procedure](hart, VERSIONS[version])
    except NotRestored:
        clean = False
    except RvtraceError as error:
        assert "\n" not in str(error)
    lied_about = ignored | refused | refuses_writes | stale
    if clean and not lied_about & {"priv", SELECT[version], 0x150}:
        assert hart.user_state() == state


@settings(max_examples=200)
@given(st.sampled_from(["1.0", "0.1.4"]), SOME, SOME, st.sampled_from([None, 16, 64]), st.booleans())
def test_what_start_reports_is_what_the_hart_has(
    version: str, ignored: frozenset[Register], refuses_writes: frozenset[Register], depth: int | None, ras: bool
) -> None:
    hart = hart_with(version, ignored=ignored, refuses_writes=refuses_writes)
    try:
        started = start(hart, VERSIONS[version], CtrRequest(depth=depth, ras=ras), "ctr0")
    except RvtraceError:
        return
    depth_bits = 0 if version == "1.0" else hart.code << 16
    assert started.in_force.control == hart.control | depth_bits
    assert (started.in_force.depth, hart.frozen) == (hart.depth, False)
    assert depth in (None, hart.depth) and hart.control & 7 == 7
    assert not any(entry[0] & 1 for entry in hart.array[: hart.depth])
