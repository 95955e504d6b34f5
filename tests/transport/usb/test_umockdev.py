"""The device models under the real libusb-1.0: OpenOCD's own drivers, unmodified, are the independent check of them;
our drivers do the same there.
"""

import errno
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.machine import Machine, build
from tests.helpers.amounts import long_only, thorough
from tests.session.board import DEMO, SMALL_RAM, executed
from tests.transport.usb import umockdev
from tests.transport.usb.esp_device import EspDevice
from tests.transport.usb.rig import Rig, esp, ftdi
from tests.transport.usb.test_session import described

OPENOCD = {
    esp: "adapter driver esp_usb_jtag; espusbjtag vid_pid 0x303a 0x1001; espusbjtag caps_descriptor 0x2000",
    ftdi: "adapter driver ftdi; ftdi vid_pid 0x0403 0x6010; ftdi layout_init 0x0008 0x000b",
}
ADAPTER = {esp: "esp", ftdi: "mpsse"}
WORDS = 24
SCRATCH = 0x8008_0000
OURS = """
import json, sys
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.target.usb import link_by
from rvtrace_gdb.support.errors import RvtraceError
link = link_by(UsbDescription(sys.argv[1]))
try:
    link.state()
    said = [link.csrs().run([("pc", None)])[0], link.read_gpr(2), link.read_block(0x80000000, 96).hex(), link.targets]
    link.write32(0x80080000, 0x12345678)
    link.step()
    said += [link.csrs().run([("pc", None)])[0], len(link.read_block(0x80000000, 0x1000))]
except RvtraceError as error:
    said = str(error)
link.close()
print(json.dumps(said))
"""
KILLED = """
import os, sys, threading
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.target.usb import link_by
link = link_by(UsbDescription(sys.argv[1]))
link.state()
threading.Timer(0.1, os.kill, (os.getpid(), 9)).start()
while True:
    link.read_block(0x80000000, 0x1000)
"""
TRACED = """
import json, sys
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.usb import link_by
session, link = Session(environ={}), link_by(UsbDescription(sys.argv[1]))
context = Context(sys.argv[2], "board.toml")
session.start(context)
link.resume()
for _ in range(10):
    link.read32(0x20000000)
link.halt()
history, _ = session.decoded(context)
print(json.dumps(list(history.pcs())))
"""


@pytest.fixture(params=[esp, ftdi], ids=["esp", "mpsse"])
def make(request: pytest.FixtureRequest) -> Callable[[Machine], Rig]:
    return request.param  # type: ignore[no-any-return]


def halted() -> Machine:
    machine = build(DEMO, memory_map=SMALL_RAM)
    machine.halt_at_start()
    machine.hart.x[2] = 0x1234_5678_9ABC
    return machine


def ours(rig: Rig, folder: Path) -> object:
    done = umockdev.run(
        rig, folder, sys.executable, "-c", OURS, "esp" if isinstance(rig.device, EspDevice) else "mpsse"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_openocd_and_we_see_the_same_target(make: Callable[[Machine], Rig], tmp_path: Path) -> None:
    machine = halted()
    memory = machine.bus.read_bytes(0x8000_0000, 4 * WORDS)
    after = build(DEMO, memory_map=SMALL_RAM).hart
    first = after.pc
    after.step()
    said = ours(make(machine), tmp_path)
    assert said == [first, 0x1234_5678_9ABC, memory.hex(), ["hart0"], after.pc, 0x1000]
    assert machine.bus.read(SCRATCH, 4) == 0x12345678

    machine = halted()
    commands = (
        f"{OPENOCD[make]}; adapter speed 10000; jtag newtap sim cpu -irlen 5 -expected-id 0x20000913; "  # type: ignore[index]
        "target create sim.cpu riscv -chain-position sim.cpu; gdb_port disabled; telnet_port disabled; "
        "tcl_port disabled; init; halt; echo [get_reg -force pc]; "
        "echo [get_reg -force sp]; "
        f"echo [read_memory 0x80000000 32 {WORDS}]; write_memory {SCRATCH:#x} 32 0x12345678; step; "
        "echo [get_reg -force pc]; shutdown"
    )
    done = umockdev.run(make(machine), tmp_path, "openocd", "-c", commands)
    assert done.returncode == 0, done.stderr
    for line in (f"pc 0x{first:016x}", "sp 0x0000123456789abc", f"pc 0x{after.pc:016x}"):
        assert line in done.stderr
    words = " ".join(f"{int.from_bytes(memory[n : n + 4], 'little'):#x}" for n in range(0, 4 * WORDS, 4))
    assert words in done.stderr
    assert machine.bus.read(SCRATCH, 4) == 0x12345678


@pytest.mark.parametrize("make", [esp, *long_only(ftdi)], indirect=True)
def test_a_trace_through_the_real_libusb(make: Callable[[Machine], Rig], tmp_path: Path) -> None:
    """What was traced is what another hart executes that is stepped, and not traced."""
    machine = halted()
    rig = make(machine)
    described(tmp_path, ADAPTER[make])  # type: ignore[index]
    begun = machine.hart.instret
    program = (sys.executable, "-c", TRACED, ADAPTER[make], str(DEMO))  # type: ignore[index]
    done = umockdev.run(rig, tmp_path, *program)
    assert done.returncode == 0, done.stderr
    ran = machine.hart.instret - begun
    assert ran > 500 and json.loads(done.stdout) == list(itertools.islice(executed(), ran))


@thorough("test_what_goes_wrong_with_the_real_libusb")
@pytest.mark.parametrize("make", [ftdi, *long_only(esp)], indirect=True)
def test_after_a_program_that_was_killed_in_the_middle_of_a_transfer(
    make: Callable[[Machine], Rig], tmp_path: Path
) -> None:
    machine = halted()
    both = 'for program in "$2" "$3"; do "$0" -c "$program" "$1" || echo $?; done'
    words = (sys.executable, ADAPTER[make], KILLED, OURS)  # type: ignore[index]
    done = umockdev.run(make(machine), tmp_path, "sh", "-c", both, *words)
    status, said = done.stdout.splitlines()
    assert status == "137" and json.loads(said)[1] == 0x1234_5678_9ABC, said + done.stderr


@pytest.mark.parametrize("make", [esp, *long_only(ftdi)], indirect=True)
def test_what_goes_wrong_with_the_real_libusb(make: Callable[[Machine], Rig], tmp_path: Path) -> None:
    rig = make(halted())
    rig.port.claim_error = errno.EBUSY
    assert "is in use by another program" in str(ours(rig, tmp_path))
    rig.port.claim_error = 0
    rig.wire.unplug_after = rig.wire.transfers + 60
    assert "is gone: it was unplugged" in str(ours(rig, tmp_path))
