"""Several harts behind the real openocd: while trace components are accessed it does not poll, and afterwards it does.

What its `poll` command says of itself is the check (OpenOCD User's Guide 0.12.0, "Polling").
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.transport.openocd.errors import OpenOcdAbsent, OpenOcdError
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.helpers.openocd_crash import kill_openocd
from tests.helpers.wait import until
from tests.transport.openocd.live_target import LOOP_FOREVER, write_elf


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("polling")
    with Rig(write_elf(folder / "loop.elf", LOOP_FOREVER), folder, "--harts", "2") as started:
        yield started


@pytest.fixture
def other(rig: Rig) -> Iterator[OpenOcd]:
    """Somebody else's connection, to look."""
    with OpenOcd(port=rig.tcl_port) as connection:
        yield connection


def polls(other: OpenOcd) -> bool:
    said = other.command("poll").splitlines()[0]
    assert said in ("background polling: on", "background polling: off")
    return said.endswith("on")


def test_not_in_between_and_again_afterwards(rig: Rig, other: OpenOcd) -> None:
    with OpenOcd(port=rig.tcl_port) as openocd:
        with openocd.unpolled():
            assert not polls(other)
            with openocd.unpolled():
                assert openocd.read32(0x2000_0000) == openocd.read32(0x2000_0000)
            assert not polls(other), "the inner one is not the end"
        assert polls(other)
        with pytest.raises(KeyError), openocd.unpolled():
            raise KeyError
        assert polls(other)


def test_who_has_switched_it_off_keeps_it_off(rig: Rig, other: OpenOcd) -> None:
    other.command("poll off")
    try:
        with OpenOcd(port=rig.tcl_port) as openocd, openocd.unpolled():
            pass
        assert not polls(other)
    finally:
        other.command("poll on")


def test_one_hart_is_polled_as_ever(tmp_path: Path) -> None:
    with Rig(write_elf(tmp_path / "loop.elf", LOOP_FOREVER), tmp_path) as rig, OpenOcd(port=rig.tcl_port) as openocd:
        with openocd.unpolled():
            assert polls(openocd)
        kill_openocd(rig)
        with pytest.raises(OpenOcdError), openocd.unpolled():
            openocd.read32(0x2000_0000)
        with pytest.raises(OpenOcdAbsent), OpenOcd(port=rig.tcl_port) as absent, absent.unpolled():
            absent.read32(0x2000_0000)


def test_who_is_killed_meanwhile_does_not_leave_it_off(
    rig: Rig, other: OpenOcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gdb would never see a hart halt."""
    with ExitStack() as never_ends, OpenOcd(port=rig.tcl_port) as openocd:
        for seconds in (0.6, 1.2, 2.4, 4.8, 9.6, 19.2):  # longer, where the machine pauses: OpenOCD may poll then
            monkeypatch.setattr("rvtrace_gdb.transport.openocd.target.UNPOLLED_MS", int(1000 * seconds))
            began = time.monotonic()
            never_ends.enter_context(openocd.unpolled())
            if works(openocd, other, began, seconds):
                break
            never_ends.close()
        else:
            raise AssertionError("the machine is too slow")
        openocd.close()
        until(lambda: polls(other), "OpenOCD polls again")
        never_ends.pop_all()


def works(openocd: OpenOcd, other: OpenOcd, began: float, seconds: float) -> bool:
    """As long as it works it goes on without a poll, longer than *seconds*, after which OpenOCD polls if it is told
    nothing. False: the machine paused meanwhile. *began*: before polling was switched off.
    """
    last = began
    while last - began < 1.6 * seconds:
        openocd.read32(0x2000_0000)
        polled = polls(other)
        now = time.monotonic()
        if now - last > 0.7 * seconds:  # it is told so each quarter of the time
            return False
        assert not polled
        last = now
    return True


def test_what_was_to_switch_it_on_again_is_gone(rig: Rig, other: OpenOcd) -> None:
    """Who switches it off later keeps it off."""
    with OpenOcd(port=rig.tcl_port) as openocd:
        for _ in range(2):
            with openocd.unpolled():
                assert not polls(other)
        assert other.command("after info") == ""
