"""Figures of the simulated target: through the real OpenOCD, of the hart with and without the compiled kernel, of the
JTAG pins.

    python benchmarks/targets/simulated.py

Needs openocd and the cross compiler. Prints what was measured beside what is to be reached; the exit status is 1 when a
figure is missed. Each is the best of a few runs: the machine is rarely alone.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.controlregs.trace_control import encoder_registers as te
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.debug.jtag import TapPins
from rvtrace_gdb.transport.simulated.machine import Machine, build
from tests.helpers.cross_compiler import HOME, compile_program
from tests.transport.simulated.debug.dmi import Dmi, JtagProbe
from tests.transport.simulated.devices.test_component import start
from tests.transport.simulated.encoder.etrace_traces import start as start_etrace
from tests.transport.simulated.openocd import OpenOcd

MARCH = "rv64gc"
TRACE_RAM, WORDS = 0x3000_0000, 0x4000
INSTRUCTIONS = 3_000_000
TRACED = {
    "HTM, a synchronization every 4096 messages": 6 << 4 | 1 << 16 | 8 << 20,
    "HTM, every 4096 halfwords": 6 << 4 | 3 << 16 | 8 << 20,
    "BTM, every 4096 halfwords": 3 << 4 | 3 << 16 | 8 << 20,
}
"""Ways to trace in N-Trace, and their bits of trTeControl."""
MCTRCTL, CTR_M, CTR_NTBREN = 0x34E, 1 << 2, 1 << 36
MISSED: list[str] = []


def best(runs: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of *runs*."""
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def report(what: str, value: float, unit: str, limit: float, *, at_least: bool = False) -> None:
    reached = value >= limit if at_least else value <= limit
    mark = "" if reached else "  MISSED"
    print(f"{what:44} {value:8.3f} {unit:9} (to reach: {'>=' if at_least else '<='} {limit:g}){mark}", flush=True)
    if not reached:
        MISSED.append(what)


def through_openocd(elf: Path, folder: Path) -> None:
    """What a user of the target waits for."""
    with OpenOcd(elf, folder) as rig:
        tcl = rig.tcl
        report("64 KiB, hart halted", best(3, lambda: tcl.words(TRACE_RAM, WORDS)), "s", 1.5)
        loop = "for {set i 0} {$i < 200} {incr i} {get_reg -force a0}"
        report("register", best(3, lambda: tcl(loop)) / 200 * 1e3, "ms", 1.0)
        tcl("resume")
        report("64 KiB, hart running", best(3, lambda: tcl.words(TRACE_RAM, WORDS)), "s", 1.5)
        loop = "for {set i 0} {$i < 200} {incr i} {read_memory 0x20000000 32 1}"
        report("trace register, hart running", best(3, lambda: tcl(loop)) / 200 * 1e3, "ms", 2.0)


def run(machine: Machine) -> None:
    """Execute INSTRUCTIONS."""
    end = machine.hart.instret + INSTRUCTIONS
    while machine.hart.instret < end:
        machine.run_slice(10_000)


def machine_traced(elf: Path, how: str) -> Machine:
    """Return a machine that is traced in this way."""
    machine = build(elf, formats=(te.TeFormat.E_TRACE if how == "E-Trace" else te.TeFormat.N_TRACE,))
    if how == "E-Trace":
        start_etrace(machine)
    elif how != "untraced":
        start(machine, TRACED[how])
    return machine


def rate_of(elf: Path, how: str, kernel: bool) -> float:
    """Return M instructions per second, in the slices the server uses."""
    os.environ["RVTRACE_KERNEL"] = "1" if kernel else "0"
    machine = machine_traced(elf, how)
    machine.run_slice(300_000)
    seconds = best(3, lambda: run(machine))
    del os.environ["RVTRACE_KERNEL"]
    return INSTRUCTIONS / seconds / 1e6


def hart(elf: Path) -> None:
    for how in ("untraced", *TRACED, "E-Trace"):
        with_kernel, without = rate_of(elf, how, True), rate_of(elf, how, False)
        least = 2.0 if how == "E-Trace" else 20.0
        report(f"hart, {how}", with_kernel, "M instr/s", least, at_least=True)
        report(f"hart, {how}: with the kernel / without", with_kernel / without, "", 1.0, at_least=True)


def recording(elf: Path) -> None:
    """The same of a hart with Control Transfer Records, while they record nothing and while they record everything."""
    for what, control in (("idle", 0), ("recording", CTR_M | CTR_NTBREN)):
        machine = build(elf, ctr=CtrBuild("1.0"))
        machine.run_slice(300_000)
        machine.hart.csr_write(MCTRCTL, control, debug=True)
        rate = INSTRUCTIONS / best(3, lambda machine=machine: run(machine)) / 1e6  # type: ignore[misc]
        report(f"hart, CTR {what}", rate, "M instr/s", 2.0, at_least=True)


def scans(pins: TapPins) -> Callable[[], None]:
    """A thousand reads of memory words over dmi, each as OpenOCD sends it."""
    dmi = Dmi(JtagProbe(pins))
    dmi.write(0x10, 1)
    dmi.write(0x38, 1 << 20 | 2 << 17 | 1 << 15)
    dmi.write(0x39, TRACE_RAM)
    bits = [0x3C << 34 >> n & 1 | (n == 0) for n in range(40)]  # and a zero with TMS high
    scan = b"".join(b"%dR%d" % (bit, 4 | bit) for bit in bits) + b"2R6"

    def work() -> None:
        for _ in range(1000):
            pins.feed(b"2604040" + scan + b"26040")

    return work


def pins(elf: Path) -> None:
    """Whole scans at once against one character after the other."""
    machine = build(elf)
    machine.halt_at_start()
    slow = best(5, scans(machine.pins(fast=False))) * 1e3
    fast = best(5, scans(machine.pins())) * 1e3
    print(f"a dmi scan of 41 bits: {fast:.1f} us at once, {slow:.1f} us by characters")
    report("by characters / at once", slow / fast, "", 1.5, at_least=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = HOME / "tests" / "programs" / "sim_work.c"
        elf = compile_program(folder, program, march=MARCH, options=("-O2",))
        through_openocd(elf, folder / "rig")
        hart(elf)
        recording(elf)
        pins(elf)
    return 1 if MISSED else 0


if __name__ == "__main__":
    sys.exit(main())
