"""`rvtrace usb`: adapters, harts, registers and memory by hand, as a shell has them. What is in the simulated target is
looked up there.
"""

import errno
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.target import usb
from rvtrace_gdb.session.target.usb import bench, link_by
from rvtrace_gdb.transport.simulated.machine import Machine, build
from rvtrace_gdb.transport.usb import device
from rvtrace_gdb.transport.usb.errors import Claimed, NoSuchDevice
from tests.session.board import DEMO, SMALL_RAM
from tests.transport.simulated.harts import machine_with
from tests.transport.usb.backend import Backend, Port
from tests.transport.usb.device_model import Wire
from tests.transport.usb.esp_device import EspDevice
from tests.transport.usb.mpsse_device import MpsseDevice
from tests.transport.usb.rig import Rig, esp, ftdi
from tests.transport.usb.test_session import NOP, SELF, no_connection_is_left, plug

__all__ = ["no_connection_is_left", "plug"]

Plug = Callable[[Rig], Rig]
Says = Callable[..., list[str]]
BASE, SCRATCH = 0x8000_0000, 0x8008_0000


def halted() -> Machine:
    machine = build(DEMO, memory_map=SMALL_RAM)
    machine.halt_at_start()
    return machine


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Says:
    """What `rvtrace usb` prints; *status* is its exit status: not 0: what stands on standard error."""
    monkeypatch.delenv("RVTRACE_TARGET", raising=False)

    def said(*words: str, status: int = 0) -> list[str]:
        assert main(["usb", *words]) == status
        out, err = capsys.readouterr()
        return (err if status else out).splitlines()

    return said


@pytest.fixture
def machine(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Behind the only adapter."""
    machine = halted()
    rig = plug(esp(machine))
    monkeypatch.setattr(usb, "attached_devices", partial(device.attached_devices, backend=rig.backend))
    return machine


def test_halt_look_around_and_resume(machine: Machine, says: Says) -> None:
    hart = machine.hart
    assert says("harts")[1:] == [f"hart 0: halted at {hart.pc:#x}"]
    assert says("resume") == ["hart 0: running"]
    assert says("reg", status=1)[0].endswith(
        "hart 0 is running, not halted: its registers cannot be reached; halt it first"
    )
    assert says("halt") == [f"hart 0: halted at {hart.pc:#x}"]
    pc = hart.pc
    says("step")
    assert hart.pc != pc
    words = says("reg")
    assert [int(line.split()[1], 16) for line in words] == [hart.pc, *hart.x[1:]]
    assert says("reg", "a0=0x1234", "mscratch=7", "x10", "0x340", "priv") == [
        f"a0        {0x1234:#018x}", f"mscratch  {7:#018x}", f"x10       {0x1234:#018x}", f"0x340     {7:#018x}",
        f"priv      {3:#018x}",
    ]  # fmt: skip
    assert (hart.x[10], hart.csr_read(0x340, debug=True)) == (0x1234, 7)
    said = json.loads(says("reg", "--json", "sp", "0x7c0")[0])
    assert said["registers"] == {"sp": f"{hart.x[2]:#x}", "0x7c0": None} and "no such CSR" in said["refused"]["0x7c0"]
    assert json.loads(says("harts", "--json")[0])["harts"] == [{"hart": 0, "state": "halted", "pc": f"{hart.pc:#x}"}]


P550, ESPRESSIF = "hifive-premier-p550", "esp32"


@pytest.mark.parametrize(
    ("idcode", "harts", "said"),
    [
        (None, [(0x489, 8 | 1 << 63)], f"(mvendorid 0x489, marchid {8 | 1 << 63:#x}), which rvtrace knows as {P550}"),
        (0x0000_DC25, [(0x612, 0x8000_0001)], f"(mvendorid 0x612), which rvtrace knows as {ESPRESSIF}"),
        (0x0001_2C25, [(0, 5)], f"(IDCODE 0x00012c25), which rvtrace knows as {ESPRESSIF}"),
        (None, [(0, 5)], ""),
    ],
)  # fmt: skip
def test_which_shipped_target_the_chip_is(
    idcode: int | None, harts: list[tuple[int, int]], said: str, machine: Machine, says: Says
) -> None:
    """By its IDCODE and its harts, where no target description says what it has."""
    machine.set_identity(idcode, harts)
    lines = says("harts")[2:]
    assert [line for line in lines if said not in line] == [] and len(lines) == bool(said)
    assert json.loads(says("harts", "--json")[0])["known"] == lines


def test_memory_shown_and_written_to_a_file(machine: Machine, says: Says, tmp_path: Path) -> None:
    memory = machine.bus.read_bytes(BASE, 64)
    shown = "".join(line.partition(": ")[2] for line in says("read", hex(BASE + 1), "33"))
    assert bytes.fromhex(shown.replace(" ", "")) == memory[1:34]
    assert says("read", hex(BASE)) == [f"{BASE:#x}: {int.from_bytes(memory[:4], 'little'):08x}"]
    file = tmp_path / "dump.bin"
    assert says("read", hex(BASE), "63", "-o", str(file)) == [f"{file}: 63 bytes from {BASE:#x}"]
    assert file.read_bytes() == memory[:63]
    assert bytes.fromhex(json.loads(says("read", hex(BASE + 3), "5", "--json")[0])["data"]) == memory[3:8]
    says("write", hex(SCRATCH), "1", "0xffffffff")
    assert machine.bus.read_bytes(SCRATCH, 8).hex() == "01000000ffffffff"


def test_what_was_read_before_the_cable_was_pulled_is_kept(
    machine: Machine, says: Says, tmp_path: Path, plug: Plug
) -> None:
    rig = plug(esp(machine, 0))
    rig.wire.unplug_after = 400
    file = tmp_path / "dump.bin"
    *said, error = says("read", hex(BASE), "0x8000", "-o", str(file), status=1)
    kept = (tmp_path / "dump.bin.part").read_bytes()
    assert not file.exists() and 0 < len(kept) < 0x8000 and kept == machine.bus.read_bytes(BASE, len(kept))
    assert f"({len(kept)} of 32768 bytes were read and are kept)" in error and said[0].endswith(
        f".part: {len(kept)} bytes from {BASE:#x}"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reg", "foo"], "there is no register 'foo': give pc, x0 to x31, ra, sp, ..., or a CSR (mepc, 0x341)"),
        (["reg", "a0=-1"], "a0=-1: '-1' is not a number from 0 on"),
        (["reg", "a0=0x10000000000000000"], "the register has 64 bits"),
        (["step", "--hart", "2"], "hart 2 cannot be reached: the debug module has 1 (hart0)"),
        (["halt", "now"], "halt takes no arguments, got: now"),
        (["read"], "read takes an address, and how many bytes"),
        (["read", "x"], "'x' is not an address"),
        (["read", "0", "0x100000"], "1048576 bytes are too many to show: write them to a file by -o FILE"),
        (["read", "0x10"], "cannot access address 0x10"),
        (["write", "2", "1"], "the address 0x2 is not a multiple of 4"),
        (["write", "0", "0x100000000"], "0x100000000 is not a word of 32 bits"),
        (["harts", "-o", "x"], "-o is for `read`"),
        (["harts", "--target", "/nonexistent.toml"], "/nonexistent.toml"),
        (["harts", "--serial", "77"], "with serial number 77, there is 303a:1001 at bus 1 device 2, serial 60:55"),
        (["harts", "--tap", "1"], "there is no TAP 1 in a chain of 1: correct `tap`"),
    ],
)
def test_every_mistake_is_one_line(machine: Machine, says: Says, words: list[str], said: str) -> None:
    (line,) = says(*words, status=1)
    assert line.startswith("rvtrace: ") and said in line


def test_the_adapters_that_are_plugged_in(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = halted()
    ports = [Port(Wire(EspDevice(machine.tap, "AA")), 2), Port(Wire(MpsseDevice(machine.tap)), 3)]
    ports[1].open_error = errno.EACCES
    monkeypatch.setattr(usb, "attached_devices", partial(device.attached_devices, backend=Backend(ports)))
    first, second = says()
    assert first == "esp    Espressif USB-JTAG, 303a:1001 at bus 1 device 2, serial AA"
    assert (
        second.startswith("mpsse  FTDI MPSSE, 0403:6010 at bus 1 device 3: you may not use") and "SUBSYSTEM==" in second
    )
    assert [it["adapter"] for it in json.loads(says("--json")[0])["adapters"]] == ["esp", "mpsse"]
    assert [port.opened for port in ports] == [0, 0]
    (line,) = says("harts", status=1)
    assert "2 USB devices are of a kind that rvtrace knows: esp 303a:1001" in line
    monkeypatch.setattr(usb, "attached_devices", partial(device.attached_devices, backend=Backend([])))
    assert says() == ["no adapter is plugged in that rvtrace knows"]
    assert "none of its kind is there: is it plugged in" in says("harts", status=1)[0]


def test_a_description_says_which(machine: Machine, says: Says, tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    component = '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0\n'
    component += '[[component]]\nname = "r"\ntype = "ram_sink"\nbase = 4096\nmode = "SRAM"\n'
    file.write_text(f'[usb]\nadapter = "esp"\nkhz = 1000\n{component}')
    assert says("harts", "--target", str(file))[1:] == [f"hart 0: halted at {machine.hart.pc:#x}"]
    assert "--tap:" in says("harts", "--target", str(file), "--tap", "0", status=1)[0]
    assert "leave out --adapter" in says("harts", "--target", str(file), "--adapter", "esp", status=1)[0]
    file.write_text(component)
    assert "board.toml: there is no table [usb]" in says("harts", "--target", str(file), status=1)[0]


def test_all_harts_or_one(plug: Plug) -> None:
    machine = machine_with([NOP] * 8, [SELF], [NOP, SELF])
    machine.halt_at_start()
    plug(esp(machine))
    with bench(UsbDescription("esp")) as it:
        assert [hart.state for hart in it.resume(1)] == ["halted", "running", "halted"]
        assert [hart.state for hart in it.resume()] == ["running"] * 3
        assert [hart.state for hart in it.halt(2)] == ["running", "running", "halted"]
        states = it.halt()
        assert [(hart.state, hart.pc) for hart in states] == [("halted", hart.pc) for hart in machine.harts]
        it.registers(1, ["t0=5"])
        assert [hart.x[5] for hart in machine.harts] == [0, 5, 0]
        with pytest.raises(BadOption, match="is not a number"):
            it.registers(1, ["t0=a"])


@pytest.mark.parametrize(("adapter", "make"), [("esp", esp), ("mpsse", ftdi)])
def test_two_descriptions_of_one_device(plug: Plug, adapter: str, make: Callable[[Machine], Rig]) -> None:
    """That differ in its speed: who uses it last has it, as it wants it, and the other has it back when it asks."""
    machine = halted()
    rig = plug(make(machine))
    first, second = link_by(UsbDescription(adapter, khz=1000)), link_by(UsbDescription(adapter, khz=6000))
    speeds = []
    for link in (first, second, first, second):
        assert link.state() == "halted" and link.read32(BASE) and rig.port.opened == 1
        speeds.append(rig.device.divider if adapter == "esp" else rig.device.divisor)
    assert speeds == [24, 4] * 2 if adapter == "esp" else [29, 4] * 2  # 24 MHz / 24; 60 MHz / ((1 + 29) * 2)
    second.close()
    assert first.state() == "halted"
    first.close()
    assert rig.port.opened == 0 and not rig.port.claimed
    rig.port.claim_error = errno.EBUSY  # another program's
    with pytest.raises(Claimed):
        first.state()
    rig.port.claim_error, rig.wire.plugged = 0, False
    with pytest.raises(NoSuchDevice):
        second.state()
    assert usb._CONNECTIONS.keys() == {UsbDescription(adapter, khz=1000), UsbDescription(adapter, khz=6000)}
