"""Registers that are refused, a hart that runs, a way to it that is lost, and any mixture of lies."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.ctr.procedures import read, start
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import CtrError, HartRuns, NotRestored, RegisterRefused
from rvtrace_gdb.controlregs.target import CsrName
from rvtrace_gdb.support.errors import RvtraceError
from tests.controlregs.ctr.faulty_stubs import CONTROL, NAMES, PROCEDURES, SELECT, STATUS, VERSION, begin, hart_with
from tests.controlregs.ctr.hart_model import CtrHart, Lies
from tests.helpers.amounts import some_of

REGISTERS = st.sampled_from([*NAMES, "priv"])
SOME = st.frozensets(REGISTERS, max_size=2)


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
    assert f"in addition, {NAMES[select]} ({select:#x}) could not be restored to {found:#x}" in str(error.value)
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


@settings(max_examples=some_of(300))
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
    ignored: frozenset[CsrName],
    refused: frozenset[CsrName],
    refuses_writes: frozenset[CsrName],
    stale: frozenset[CsrName],
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


@settings(max_examples=some_of(200))
@given(st.sampled_from(["1.0", "0.1.4"]), SOME, SOME, st.sampled_from([None, 16, 64]), st.booleans())
def test_what_start_reports_is_what_the_hart_has(
    version: str, ignored: frozenset[CsrName], refuses_writes: frozenset[CsrName], depth: int | None, ras: bool
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
