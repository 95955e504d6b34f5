"""Which version there is, and harts whose present mode may not reach the registers, where the stub minds that."""

import pytest

from rvtrace_gdb.controlregs.ctr.hart import detect
from rvtrace_gdb.controlregs.ctr.procedures import read, start, status, stop
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import CtrForbidden, HartRuns, NoCtr, RegisterRefused, UnknownVersion
from rvtrace_gdb.support.errors import Cancelled
from tests.controlregs.ctr.hart_model import CtrHart, Lies

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
SELECT = {"1.0": 0x150, "0.1.4": 0x350}
OPEN = {"1.0": 1 << 54 | 1 << 60, "0.1.4": 1 << 55 | 1 << 60}
BELOW = pytest.mark.parametrize("priv", [0, 1, 4, 5], ids=["u", "s", "vu", "vs"])


def writes_of_priv(hart: CtrHart) -> list[int | None]:
    return [value for register, value in hart.log if register == "priv" and value is not None]


# Versions


@VERSION
@pytest.mark.parametrize("machine", [True, False], ids=["smctr", "ssctr"])
def test_detect(version: str, machine: bool) -> None:
    hart = CtrHart(version, machine=machine)
    assert detect(hart).key == detect(hart, version).key == version
    assert all(value is None for _, value in hart.log), "looking changes nothing"


@VERSION
def test_the_other_version(version: str) -> None:
    wanted = "0.1.4" if version == "1.0" else "1.0"
    with pytest.raises(NoCtr, match=f"Transfer Records {wanted}, but {version}: choose that version") as error:
        detect(CtrHart(version), wanted)
    assert (error.value.requested, error.value.other) == (wanted, version)


def test_no_ctr() -> None:
    hart = CtrHart(lies=Lies(refused=frozenset({0x34E, 0x14E})))
    with pytest.raises(NoCtr) as error:
        detect(hart)
    assert str(error.value) == (
        "this hart has no Control Transfer Records "
        "(test hart: mctrctl, sctrctl: refused; mctrcontrol, sctrcontrol: no such CSR)"
    )


def test_an_unknown_version() -> None:
    with pytest.raises(UnknownVersion, match=r"no Control Transfer Records version 2\.0: choose one of 1\.0, 0\.1\.4"):
        detect(CtrHart(), "2.0")


def test_detect_while_the_hart_runs() -> None:
    with pytest.raises(HartRuns):
        detect(CtrHart(lies=Lies(runs_after=0)))


# Privilege


@VERSION
@BELOW
def test_the_mode_is_raised_and_put_back(version: str, priv: int) -> None:
    """mstateen0 closes CTR below M mode: QEMU's stub refuses the registers then."""
    hart = CtrHart(version, priv=priv, mstateen0=0, hypervisor=True)
    started = start(hart, detect(hart), CtrRequest(depth=16), "ctr0")
    assert hart.priv == priv and started.in_force.privilege == priv
    hart.record(0x100, 0x200, 5)
    in_force, entries = read(hart, VERSIONS[version], "ctr0")
    assert hart.priv == priv == in_force.privilege and len(entries) == 1
    assert status(hart, VERSIONS[version], "ctr0").recorded == 1
    stop(hart, VERSIONS[version], started.saved)
    assert hart.priv == priv and hart.user_state() == CtrHart(version, priv=priv).user_state()


@VERSION
@pytest.mark.parametrize("priv", [0, 1, 3, None], ids=["u", "s", "m", "no-priv"])
def test_the_mode_is_left_alone_where_the_registers_are_open(version: str, priv: int | None) -> None:
    """Writing it kills the reservation of an lr/sc."""
    hart = CtrHart(version, priv=priv, mstateen0=OPEN[version])
    start(hart, detect(hart), CtrRequest(), "ctr0")
    read(hart, VERSIONS[version], "ctr0")
    assert writes_of_priv(hart) == []


@VERSION
@pytest.mark.parametrize("priv", [4, 5], ids=["vu", "vs"])
def test_a_guest_has_registers_of_its_own(version: str, priv: int) -> None:
    """With V=1 siselect, sireg* and sctrctl are VS mode's: the mode is raised even if nothing is refused."""
    hart = CtrHart(version, priv=priv, mstateen0=OPEN[version], hypervisor=True)
    hart.record(0x100, 0x200, 5)
    in_force, entries = read(hart, VERSIONS[version], "ctr0")
    assert len(entries) == 1 and in_force.privilege == priv == hart.priv
    assert writes_of_priv(hart) == [3, priv]
    assert hart.selects == CtrHart(version).selects


@VERSION
@pytest.mark.parametrize("priv", [0, 1], ids=["u", "s"])
def test_a_stub_that_does_not_let_m_mode_s_registers_be_seen(version: str, priv: int) -> None:
    hart = CtrHart(version, priv=priv, strict=True)
    assert read(hart, detect(hart), "ctr0")[1] == [] and hart.priv == priv
    started = start(hart, VERSIONS[version], CtrRequest(), "ctr0")
    assert started.saved.machine and hart.control == 7 and hart.priv == priv


@VERSION
@pytest.mark.parametrize("priv", [0, 1], ids=["u", "s"])
def test_s_mode_s_registers_where_the_mode_cannot_be_raised(version: str, priv: int) -> None:
    """Better than nothing: all but M mode can be recorded."""
    hart = CtrHart(version, priv=priv, strict=True, priv_fixed=True)
    started = start(hart, detect(hart), CtrRequest(), "ctr0")
    assert not started.saved.machine and hart.control == (3 if version == "1.0" else 6)


@VERSION
@pytest.mark.parametrize(
    ("mstateen0", "strict", "closed_by"),
    [(0, False, "CTR and CSRIND"), (1 << 60, False, "CTR"), (0, True, "")],
    ids=["both", "ctr", "mstateen0-not-readable"],
)
def test_the_mode_cannot_be_raised(version: str, mstateen0: int, strict: bool, closed_by: str) -> None:
    bit = 54 if version == "1.0" else 55
    hart = CtrHart(version, priv=0, mstateen0=mstateen0, strict=strict, priv_fixed=True)
    if version == "0.1.4" and not strict:  # mctr* and miselect are not closed by it
        assert read(hart, detect(hart), "ctr0")[1] == []
        return
    with pytest.raises(CtrForbidden) as error:
        read(hart, VERSIONS[version], "ctr0")
    text = str(error.value)
    assert " is closed in U mode" in text and "`priv` cannot be set to 3: it then reads 0 (test hart)" in text
    assert (f"mstateen0.CTR, bit {bit}," in text) == ("CTR" in closed_by)
    assert ("mstateen0.CSRIND, bit 60," in text) == ("CSRIND" in closed_by)
    assert "\n" not in text and hart.user_state() == CtrHart(version, priv=0).user_state()


def test_detect_where_the_mode_cannot_be_raised() -> None:
    hart = CtrHart(priv=0, mstateen0=0, strict=True, priv_fixed=True)
    refusal = "is closed in U mode, or does not exist, and `priv` cannot be set to 3"
    with pytest.raises(CtrForbidden, match=refusal) as error:
        detect(hart)
    assert not error.value.sure


@pytest.mark.parametrize("lies", [Lies(refuses_writes=frozenset({"priv"})), Lies(ignored=frozenset({"priv"}))])
def test_a_guest_whose_mode_cannot_be_raised(lies: Lies) -> None:
    hart = CtrHart(priv=5, hypervisor=True, lies=lies)
    with pytest.raises(CtrForbidden, match=r"siselect \(0x150\) is closed in VS mode.*: VS has its own"):
        read(hart, VERSIONS["1.0"], "ctr0")
    assert hart.user_state() == CtrHart(priv=5).user_state()


@VERSION
def test_no_priv_and_closed_registers(version: str) -> None:
    """OpenOCD: Debug Mode may do everything, so what is refused is not there."""
    hart = CtrHart(version, priv=None, lies=Lies(refused=frozenset({SELECT[version], 0x150})))
    with pytest.raises(RegisterRefused, match=r"iselect \(0x.50\) cannot be read"):
        read(hart, VERSIONS[version], "ctr0")


@VERSION
def test_the_mode_is_put_back_after_an_error(version: str) -> None:
    hart = CtrHart(version, priv=5, hypervisor=True, lies=Lies(ignored=frozenset({SELECT[version]})))
    with pytest.raises(Exception, match="iselect"):
        read(hart, VERSIONS[version], "ctr0")
    assert hart.priv == 5


@VERSION
def test_the_mode_is_put_back_after_ctrl_c(version: str) -> None:
    hart = CtrHart(version, priv=5, hypervisor=True)

    def impatient(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled()

    with pytest.raises(Cancelled):
        start(hart, VERSIONS[version], CtrRequest(), "ctr0", progress=impatient)
    assert hart.user_state() == CtrHart(version, priv=5).user_state()
