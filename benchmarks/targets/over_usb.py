"""How long 16 KiB of trace take over USB, beside OpenOCD's own driver at the same device, and by how many transfers.

    python benchmarks/targets/over_usb.py

Needs openocd, umockdev and the system's Python with gi (scripts/setup-tools). The device is a model, in this process:
the seconds are the model's and umockdev's; the transfers are what a real device sees, too (and with libusb, each time
it has nothing to say while its buffer is emptied). The exit status is 1 when a figure is missed.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.transport.simulated.machine import Machine, build
from tests.session.board import DEMO, SMALL_RAM
from tests.transport.usb import umockdev
from tests.transport.usb.rig import Rig, esp, ftdi

BYTES = 0x4000
BUFFER = 0x3000_0000
ADAPTERS: dict[str, tuple[Callable[[Machine, int], Rig], str]] = {
    "esp": (
        esp,
        "adapter driver esp_usb_jtag; espusbjtag vid_pid 0x303a 0x1001; espusbjtag caps_descriptor 0x2000",
    ),
    "mpsse": (ftdi, "adapter driver ftdi; ftdi vid_pid 0x0403 0x6010; ftdi layout_init 0x0008 0x000b"),
}
TARGET = (
    "adapter speed 10000; jtag newtap sim cpu -irlen 5; target create sim.cpu riscv -chain-position sim.cpu; "
    "gdb_port disabled; telnet_port disabled; tcl_port disabled; init; halt; "
)
OURS = f"""
import sys, time
from rvtrace_gdb.session.description.model import UsbDescription
from rvtrace_gdb.session.target.usb import link_by
link = link_by(UsbDescription(sys.argv[1]))
link.state()
begun = time.perf_counter()
link.read_block({BUFFER}, {BYTES})
print("took", round(1000 * (time.perf_counter() - begun)))
link.close()
"""
OPENOCD = (
    f'set begun [ms]; set words [read_memory {BUFFER} 32 {BYTES // 4}]; echo "took [expr {{[ms] - $begun}}]"; shutdown'
)
MISSED: list[str] = []


def report(what: str, value: float, unit: str, limit: float, *, at_least: bool = False) -> None:
    reached = value >= limit if at_least else value <= limit
    mark = "" if reached else "  MISSED"
    print(f"{what:52} {value:8.2f} {unit:9} (to reach: {'>=' if at_least else '<='} {limit:g}){mark}", flush=True)
    if not reached:
        MISSED.append(what)


def rig_of(make: Callable[[Machine, int], Rig]) -> Rig:
    machine = build(DEMO, memory_map=SMALL_RAM)
    machine.halt_at_start()
    return make(machine, 0)


def seconds(done: "subprocess.CompletedProcess[str]") -> float:
    found = re.search(r"took (\d+)", done.stdout + done.stderr)
    if found is None:
        raise SystemExit(done.stderr)
    return int(found[1]) / 1000


def measure(adapter: str, folder: Path) -> None:
    make, driver = ADAPTERS[adapter]
    rig = rig_of(make)
    ours = seconds(umockdev.run(rig, folder, sys.executable, "-c", OURS, adapter))
    openocd_rig = rig_of(make)
    openocd = seconds(umockdev.run(openocd_rig, folder, "openocd", "-c", f"{driver}; {TARGET}{OPENOCD}", seconds=120))
    report(f"{adapter}: 16 KiB, real libusb", ours, "s", 3.0)
    print(
        f"{adapter + ': OpenOCD, the same device':52} {openocd:8.2f} s, {openocd_rig.wire.transfers} transfers in all"
    )
    report(f"{adapter}: transfers in all", rig.wire.transfers, "", 900)
    times = openocd_rig.wire.transfers / rig.wire.transfers
    report(f"{adapter}: OpenOCD makes times as many transfers", times, "", 10.0, at_least=True)
    report(f"{adapter}: OpenOCD takes times as long", openocd / ours, "", 8.0, at_least=True)


def without_libusb() -> None:
    rig = rig_of(esp)
    with rig.target() as target:
        target.state()
        before, begun = rig.wire.transfers, time.perf_counter()
        target.read_block(BUFFER, BYTES)
        report("esp: 16 KiB, no libusb (the model's time)", time.perf_counter() - begun, "s", 2.0)
        report("esp: transfers for 16 KiB", rig.wire.transfers - before, "", 300)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        for adapter in ADAPTERS:
            measure(adapter, Path(folder))
    without_libusb()
    return 1 if MISSED else 0


if __name__ == "__main__":
    sys.exit(main())
