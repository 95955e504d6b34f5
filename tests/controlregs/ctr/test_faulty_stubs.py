"""Stubs that lie: writes that are accepted and do nothing, and values that are old.

Whatever they do, a procedure ends in one line that names the register, or what it reports is true.
"""

import pytest

from rvtrace_gdb.controlregs.ctr.procedures import clear, read, stop
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import CtrError, RegisterRefused, ReservedDepth, StaleEntries, WriteIneffective
from tests.controlregs.ctr.faulty_stubs import CONTROL, NAMES, PROCEDURES, SELECT, STATUS, VERSION, begin, hart_with
from tests.controlregs.ctr.hart_model import CtrHart, Lies


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
    """What nobody asked for is not a wish that was not granted."""
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
def test_entries_that_do_not_follow_the_select(version: str) -> None:
    """OpenOCD behind gdb shows what was read before where an access fails: all entries look the same."""
    aliases = frozenset(SELECT[version] + n for n in (1, 2, 3))
    hart = hart_with(version, stale=aliases)
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
