"""A trace made over USB, from the target description to the history; and the harts that it runs on.

The expectation is a second simulated hart, stepped instruction by instruction and never traced.
"""

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.debug_triggers import TriggerPoint, allocate, release
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAccess, DataPort, Target
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TrigAction
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.errors import HartUnreachable
from rvtrace_gdb.session.queries.hardware.info import info
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target import usb as target_usb
from rvtrace_gdb.session.target.link import Link, csrs_of
from rvtrace_gdb.session.target.usb import UsbLink, link_by
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from rvtrace_gdb.transport.usb.errors import DebugModuleProblem, NoTcl, UsbHartNotHalted
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.mpsse import Mpsse
from tests.helpers.amounts import thorough
from tests.session.board import BUFFER, DEMO, ENCODER, SINK, SMALL_RAM, executed
from tests.transport.simulated.harts import machine_with
from tests.transport.usb.rig import Rig, esp, ftdi

NOBODY: dict[str, str] = {}
NOP, SELF = 0x13, 0x6F  # addi x0, x0, 0; jal x0, 0
COMPONENTS = f"""
[[component]]
name = "encoder0"
type = "encoder"
base = {ENCODER}
[[component]]
name = "ram0"
type = "ram_sink"
base = {SINK}
"""


@pytest.fixture(autouse=True)
def no_connection_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_usb, "_CONNECTIONS", {})


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rig], Rig]:
    """Put a device on the bus that a session looks at."""

    def plugged(rig: Rig) -> Rig:
        monkeypatch.setattr(target_usb, "EspJtag", partial(EspJtag, backend=rig.backend))
        monkeypatch.setattr(target_usb, "Mpsse", partial(Mpsse, backend=rig.backend))
        return rig

    return plugged


def described(folder: Path, adapter: str, mode: str = "SMEM") -> Context:
    file = folder / "board.toml"
    buffer = f"start = {BUFFER}\nsize = 0x10000\n" if mode == "SMEM" else ""
    file.write_text(f'[usb]\nadapter = "{adapter}"\n{COMPONENTS}mode = "{mode}"\n{buffer}')
    return Context(str(DEMO), str(file))


def halted() -> Machine:
    machine = build(DEMO, memory_map=SMALL_RAM)
    machine.halt_at_start()
    return machine


@pytest.mark.parametrize("mode", ["SMEM", "SRAM"])
@pytest.mark.parametrize(("adapter", "make"), [("esp", esp), ("mpsse", ftdi)])
def test_a_trace_started_run_and_read_out(
    tmp_path: Path, plug: Callable[[Rig], Rig], adapter: str, make: Callable[[Machine, int], Rig], mode: str
) -> None:
    machine = halted()
    rig = plug(make(machine, 100))
    context = described(tmp_path, adapter, mode)
    session = Session(environ=NOBODY)
    assert session.start(context)
    before = machine.hart.instret
    link = link_by(UsbDescription(adapter))
    link.resume()
    assert link.state() == "running"
    while machine.hart.instret < before + 1000:
        link.read32(ENCODER)
    link.halt()
    ran = machine.hart.instret - before
    history, _ = session.decoded(context)
    assert list(history.pcs()) == list(itertools.islice(executed(), ran))
    assert f"USB ({adapter})" in "\n".join(session.status(context))
    session.close()
    link.close()
    assert rig.port.opened == 0


@thorough("transport/usb/test_device.py::test_unplugged_at_any_moment_and_plugged_in_again")
@pytest.mark.parametrize("transfers", [3, 15, 30, 45])
def test_unplugged_while_it_is_read_out_and_again(tmp_path: Path, plug: Callable[[Rig], Rig], transfers: int) -> None:
    """What was read before stays, the reason is told, and all is there when it is plugged in again."""
    machine = halted()
    rig = plug(esp(machine, 0))
    session, context = Session(environ=NOBODY), described(tmp_path, "esp")
    session.start(context)
    begun = machine.hart.instret

    def shown_after(instructions: int) -> tuple[list[int], list[int]]:
        machine._control.resume()
        machine.run_slice(instructions)
        machine._control.halt(DebugCause.HALTREQ)
        history, _ = session.decoded(context)
        return list(history.pcs()), list(itertools.islice(executed(), machine.hart.instret - begun))

    first, reference = shown_after(300)
    assert first == reference
    rig.wire.unplug_after = rig.wire.transfers + transfers
    shown, reference = shown_after(700)
    assert len(first) <= len(shown) and shown == reference[: len(shown)]
    assert "it was unplugged" in "\n".join(session.status(context))
    rig.wire.plugged, rig.wire.unplug_after = True, None
    history, _ = session.decoded(context)
    assert list(history.pcs()) == reference
    assert "it was unplugged" not in "\n".join(session.status(context))


def test_triggers_are_set_over_usb(tmp_path: Path, plug: Callable[[Rig], Rig]) -> None:
    """`trace start -trigger-on ADDRESS`: the debug triggers of the hart, by its CSRs."""
    machine = halted()
    plug(esp(machine, 0))
    session, context = Session(environ=NOBODY), described(tmp_path, "esp")
    reference = list(itertools.islice(executed(), 600))
    place = next(pc for n, pc in enumerate(reference) if n > 100 and pc not in reference[:n])
    session.start(context, {"trigger_on": [place]})
    begun = machine.hart.instret
    machine._control.resume()
    machine.run_slice(400)
    machine._control.halt(DebugCause.HALTREQ)
    ran = reference[: machine.hart.instret - begun]
    history, _ = session.decoded(context)
    assert list(history.pcs()) == ran[ran.index(place) :]
    session.stop()
    assert link_by(UsbDescription("esp")).csrs().run([(0x7A0, 3), (0x7A2, None)])[1] == 0


def test_what_trace_info_says(tmp_path: Path, plug: Callable[[Rig], Rig]) -> None:
    rig = plug(esp(halted()))
    said = "\n".join(info(Session(environ=NOBODY), described(tmp_path, "esp"), environ=NOBODY))
    assert "USB (esp)" in said and "cannot be reached" not in said and "0x20001000" in said
    assert rig.port.opened == 0


def usb(machine: Machine, plug: Callable[[Rig], Rig]) -> UsbLink:
    plug(esp(machine))
    return link_by(UsbDescription("esp"))


def test_it_has_what_a_session_needs(plug: Callable[[Rig], Rig]) -> None:
    link: Link = usb(halted(), plug)
    target: Target = link
    assert isinstance(link, DataPort) and target.read32(0x8000_0000)
    with link.unpolled():
        assert (link.state(), link.xlen(), link.targets) == ("halted", 64, ("hart0",))
    with pytest.raises(NoTcl, match="there is no OpenOCD on the way to this target to run 'targets'"):
        link.command("targets")
    link.close()


def test_links_to_one_device_share_it(plug: Callable[[Rig], Rig]) -> None:
    rig = plug(esp(halted()))
    first, second = link_by(UsbDescription("esp")), link_by(UsbDescription("esp"))
    assert first.state() == second.state() == "halted"
    assert rig.port.opened == 1
    first.close()
    assert second.read32(0x8000_0000) and rig.port.opened == 1
    second.close()
    assert rig.port.opened == 0
    assert first.state() == "halted" and rig.port.opened == 1
    first.close()


def test_several_harts(plug: Callable[[Rig], Rig]) -> None:
    """Each has its own state and registers; those of the others stay."""
    machine = machine_with([NOP] * 8, [SELF], [NOP, SELF])
    machine.halt_at_start()
    link = usb(machine, plug)
    link.state()
    assert link.targets == ("hart0", "hart1", "hart2")
    link.resume(1)
    assert [link.state(hart) for hart in range(3)] == ["halted", "running", "halted"]
    link.step(0)
    assert [machine.harts[hart].pc for hart in (0, 2)] == [0x8000_0004, 0x8000_2000]
    link.write_gpr(5, 0x1234_5678_9ABC_DEF0, 2)
    assert (link.read_gpr(5, 2), machine.harts[2].x[5], machine.harts[0].x[5]) == (*[0x1234_5678_9ABC_DEF0] * 2, 0)
    link.target = "hart2"
    assert link.state() == "halted" and link.read_gpr(3) == machine.harts[2].x[3]
    link.close()


def test_a_hart_that_is_reset_in_the_middle(plug: Callable[[Rig], Rig]) -> None:
    machine = halted()
    link = usb(machine, plug)
    link.write_gpr(5, 0x1234)
    machine.debug_module.system_reset(True)
    assert link.state() == "unavailable" and link.read32(0x8000_0000)
    with pytest.raises(DebugModuleProblem, match=r"hart 0 is unavailable: is it powered, and out of reset\?"):
        link.halt()
    with pytest.raises(UsbHartNotHalted, match=r"hart 0 is unavailable, .* is it powered, and out of reset\?"):
        link.read_gpr(5)
    with pytest.raises(HartUnreachable, match="its state is unavailable"):
        csrs_of(link, 0, {}).run([("pc", None)])
    machine.debug_module.system_reset(False)
    assert link.state() == "running"
    link.halt()
    assert link.csrs().run([("pc", None)]) == [machine.hart.pc]
    link.close()


@pytest.mark.parametrize("make", [esp, ftdi])
def test_addresses_of_64_bits(plug: Callable[[Rig], Rig], make: Callable[[Machine, int], Rig]) -> None:
    """A block over the end of 4 GiB, too."""
    base = 0x12_FFFF_FF00
    bus = Bus(base, 1 << 12)
    machine = Machine(Hart(bus, 64, "IMAC", base), MemoryMap(ram=base, ram_size=1 << 12))
    machine.halt_at_start()
    with make(machine, 0).target() as link:
        link.write32(0x12_FFFF_FFFC, 0x1234_5678)
        bus.write(0x13_0000_0000, 4, 0x9ABC_DEF0)
        assert link.read_block(0x12_FFFF_FFFC, 8).hex() == "78563412f0debc9a"
        assert link.read32(0x13_0000_0000) == 0x9ABC_DEF0
        assert link.read_data_port(0x13_0000_0000, 2).hex() == "f0debc9a" * 2
        assert link.csrs().run([("pc", None)]) == [base]


def test_a_hart_that_there_is_not(tmp_path: Path, plug: Callable[[Rig], Rig]) -> None:
    rig = plug(esp(halted()))
    context = described(tmp_path, "esp")
    file = tmp_path / "board.toml"
    file.write_text(file.read_text().replace('[[component]]\nname = "ram0"', 'hart = 2\n[[component]]\nname = "ram0"'))
    with pytest.raises(HartUnreachable, match=r"hart 2 cannot be reached: the debug module has 1 \(hart0\); correct"):
        Session(environ=NOBODY).start(context)
    assert rig.port.opened == 0


def test_stepping_leaves_dcsr_as_it_was(plug: Callable[[Rig], Rig]) -> None:
    machine = machine_with([NOP] * 8)
    machine.halt_at_start()
    link = usb(machine, plug)
    before = link.csrs().run([(0x7B0, None)])[0]
    for n in range(1, 4):
        link.step()
        assert link.csrs().run([("pc", None)]) == [0x8000_0000 + 4 * n]
    after = link.csrs().run([(0x7B0, None)])[0]
    assert isinstance(before, int) and isinstance(after, int)
    assert (before ^ after) & ~(7 << 6) == 0  # all but cause (4.9.1)
    link.close()


def test_registers_and_memory_are_saved(plug: Callable[[Rig], Rig], tmp_path: Path) -> None:
    machine = halted()
    plug(esp(machine))
    machine.hart.x[10], machine.hart.f[9] = 0x1234, 0x4000_0000_0000_0000
    context = described(tmp_path, "esp")
    with open(str(context.target_file), "a") as file:
        file.write('[[memory]]\naddress = 0x80000000\nsize = 0x2000\nkind = "ram"\n')
    session = Session(environ=NOBODY)
    session.start(context, {"with_memory": True})
    capture = session.capture()
    [registers] = capture.registers
    assert [registers.registers[0x1000 + n] for n in range(1, 32)] == machine.hart.x[1:]
    assert [registers.registers[0x1020 + n] for n in range(32)] == machine.hart.f
    assert (registers.pc, registers.privilege) == (machine.hart.csr.debug.dpc, 3)
    [memory] = capture.memory
    assert (memory.address, memory.data) == (0x8000_0000, machine.bus.read_bytes(0x8000_0000, 0x2000))
    session.close()


def test_csrs_for_triggers_and_control_transfer_records(plug: Callable[[Rig], Rig]) -> None:
    """The procedures over CsrAccess work on it: a trigger is set, and taken back."""
    machine = halted()
    link = usb(machine, plug)
    access: CsrAccess = csrs_of(link, 0, {})
    assert access.xlen == 64 and access.name == "hart 0"
    taken, notes = allocate(access, 0, [TriggerPoint(TrigAction.TRACE_ON, 0x8000_0010)])
    assert not notes and len(taken) == 1
    access.run([(0x7A0, taken[0].number)])
    assert access.run([(0x7A2, None)]) == [0x8000_0010]
    assert release(access, 0, taken) == []
    access.run([(0x7A0, taken[0].number)])
    assert access.run([(0x7A2, None)]) == [0]
    link.resume()
    with pytest.raises(HartRuns):
        access.run([(0x7A0, None)])
    with pytest.raises(HartUnreachable, match="hart 1 cannot be reached: the debug module has 1"):
        csrs_of(link, 1, {})
    link.close()
