"""Several harts behind the real openocd: while trace components are accessed it does not poll, and afterwards it does.

What its `poll` command says of itself is the check (OpenOCD User's Guide 0.12.0, "Polling").
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.rig import Rig
from tests.transport.live import LOOP_FOREVER, write_elf
from transport.openocd import OpenOcd
from transport.openocd_errors import OpenOcdAbsent, OpenOcdError


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
        rig.kill_openocd()
        with pytest.raises(OpenOcdError), openocd.unpolled():
            openocd.read32(0x2000_0000)
    with pytest.raises(OpenOcdAbsent), OpenOcd(port=rig.tcl_port) as absent, absent.unpolled():
        absent.read32(0x2000_0000)
