"""Stopping and clearing over a register file written from the documents (`ctr_registers`)."""

import pytest

from rvtrace_gdb.controlregs.ctr.hart import detect
from rvtrace_gdb.controlregs.ctr.procedures import clear, start, stop
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import RegisterRefused
from tests.controlregs.ctr.hart_model import CtrHart
from tests.controlregs.ctr.rig import VERSION, XLEN, begin, changed, junk


@VERSION
@XLEN
@pytest.mark.parametrize("hypervisor", [False, True], ids=["no-h", "h"])
def test_stop_leaves_everything_as_it_was_found(version: str, xlen: int, hypervisor: bool) -> None:
    hart = CtrHart(version, xlen, hypervisor=hypervisor)
    hart.control = hart.writable & 0x5555_5555 if xlen == 32 else hart.writable & 0xAAAA_5555_5555
    hart.vs_control = hart.control & ~0x305 if hypervisor else 0
    hart.code, hart.frozen = hart.codes[1], True
    before, state = changed(hart), hart.user_state()
    started = begin(hart, ras=True, modes=frozenset({"u", "s"}))
    assert changed(hart) != before
    notes = stop(hart, VERSIONS[version], started.saved)
    assert changed(hart) == before and hart.user_state() == state
    assert [note.partition(" is ")[0] for note in notes] == ["mctrctl" if version == "1.0" else "mctrcontrol"]


@VERSION
def test_somebody_else_records(version: str) -> None:
    """Said once, when it is taken over; and bits of the register that mean nothing are left as they are."""
    hart = CtrHart(version)
    hart.control = 2 | 1 << 20 | 1 << 50
    name = "mctrctl" if version == "1.0" else "mctrcontrol"
    started = begin(hart)
    assert started.notes == (
        f"{name} was {2 | 1 << 20 | 1 << 50:#x}, recording was on: those records are lost; "
        "`stop` restores the register",
    )
    number = 0x34E if version == "1.0" else 0x381
    written = [value for register, value in hart.log if register == number and value is not None]
    assert len(written) > 2 and all(value >> 20 & 1 and value >> 50 & 1 for value in written)
    assert hart.control & 0xFFFF == 7
    again = start(hart, VERSIONS[version], CtrRequest(), "ctr0", started.saved)
    assert again.notes == ()


@VERSION
def test_stop_switches_off_what_was_off(version: str) -> None:
    hart = CtrHart(version)
    started = begin(hart, ras=True)
    assert stop(hart, VERSIONS[version], started.saved) == ()
    assert hart.control == 0


@VERSION
def test_a_second_start_does_not_forget_what_the_first_found(version: str) -> None:
    hart = CtrHart(version)
    hart.code, hart.frozen = hart.codes[0], True
    before = changed(hart)
    first = begin(hart)
    second = start(hart, VERSIONS[version], CtrRequest(ras=True), "ctr0", first.saved)
    assert second.saved is first.saved
    stop(hart, VERSIONS[version], second.saved)
    assert changed(hart) == before


@VERSION
def test_stop_of_what_somebody_else_started(version: str) -> None:
    """Nothing is known of what was before: only recording goes off."""
    hart = CtrHart(version, hypervisor=True)
    hart.control = hart.vs_control = hart.writable & ~(0x305 if version == "0.1.4" else 0x204)
    hart.code, hart.frozen = hart.codes[2], True
    control, guest = hart.control, hart.vs_control
    stop(hart, VERSIONS[version], None)
    assert (hart.control, hart.vs_control) == (control & ~7, guest & ~7)
    assert (hart.code, hart.frozen) == (hart.codes[2], True)


@VERSION
def test_start_and_stop_through_s_mode_s_registers(version: str) -> None:
    """Ssctr without Smctr: M and MTE stay out of reach."""
    hart = CtrHart(version, machine=False)
    started = begin(hart, modes=frozenset({"m", "u"}), external=frozenset({"s"}))
    machine, supervisor = ("mctrctl", "sctrctl") if version == "1.0" else ("mctrcontrol", "sctrcontrol")
    assert started.notes[0] == (
        f"{machine} is closed, and {supervisor} does not reach M mode: that setting stays as it is"
    )
    assert hart.control & 0xFFFF == (1 | 1 << 8 if version == "1.0" else 4 | 1 << 9)
    assert not started.saved.machine
    assert stop(hart, VERSIONS[version], started.saved) == () and hart.control == 0


def test_recording_is_off_even_if_stop_fails() -> None:
    """Then nobody goes on recording with half of our set-up."""
    hart = CtrHart()
    hart.control = 7
    started = begin(hart)
    hart.lies.refuses_writes = frozenset({0x15F})
    with pytest.raises(RegisterRefused, match=r"sctrdepth \(0x15f\) cannot be written \(test hart\): refused"):
        stop(hart, VERSIONS["1.0"], started.saved)
    assert hart.control & 7 == 0


def test_what_acts_when_it_is_written_is_not_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stub that shows CLR as it was written: stop would clear the records."""
    hart = CtrHart("0.1.4")
    plain = hart._value
    monkeypatch.setattr(hart, "_value", lambda number: plain(number) | (number == 0x381) << 7)
    started = begin(hart)
    hart.record(0x100, 0x200, 9)
    stop(hart, VERSIONS["0.1.4"], started.saved)
    assert not started.saved.control >> 7 & 1 and any(any(entry) for entry in hart.array)


# Clearing


@VERSION
@XLEN
def test_clear(version: str, xlen: int) -> None:
    hart = CtrHart(version, xlen)
    hart.code, hart.control = hart.codes[3], 7
    junk(hart)
    hart.frozen = True
    resets, state, wrptr = hart.counter_resets, hart.user_state(), hart.wrptr
    clear(hart, VERSIONS[version])
    assert not any(any(entry) for entry in hart.array)
    assert hart.counter_resets > resets, "the next record would count cycles from before"
    assert hart.control == 7 and hart.depth == 128 and hart.user_state() == state
    # SCTRCLR leaves sctrstatus alone, CLR zeroes mctrstatus.
    assert (hart.wrptr, hart.frozen) == ((wrptr, True) if version == "1.0" else (0, False))


@VERSION
def test_few_round_trips(version: str) -> None:
    hart = CtrHart(version)
    begin(hart)
    assert hart.batches < 64
    for n in range(300):
        hart.record(4 * n, 0, 9)
    hart.batches = 0
    clear(hart, detect(hart))
    assert hart.batches < 48
