"""What the trace of a live target costs in gdb, through the real OpenOCD: a full buffer, and a little more later.

    python benchmarks/gdb/read_out.py [MEBIBYTES]

Prints seconds, and how they compare with OpenOCD's `dump_image` of the same bytes, measured in the same gdb: the first
`trace history` of a buffer of 64 KiB, and another after a few kilobytes more in a buffer of MEBIBYTES (default 1); the
same of an ETR of CoreSight (memory), and of an ETB, whose words come out of one register (RRD). And what is left of
that without the target: as many bytes a second as rvtrace gets out of an OpenOCD whose JTAG costs nothing, to compare
with the 33.9 KiB/s in which a vendor's OpenOCD reads the ETR of a SpacemiT K3.
Needs gdb, openocd and the cross compiler.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.gdbext.gdb_process import GDB
from tests.helpers.cross_compiler import HOME, compile_program

MARCH = "rv64gc"
TIMED = """
python
import time, gdb
def timed(name, command):
    begun = time.perf_counter()
    gdb.execute(command, to_string=True)
    print(f"@{name} {time.perf_counter() - begun:.6f}")
end
"""


def gdb_says(elf: Path, rig: Rig, commands: str) -> dict[str, float]:
    """The seconds of each timed command of a gdb."""
    script = Path(rig.folder) / "commands.gdb"
    script.write_text(
        f"set pagination off\nset confirm off\nsource {HOME / 'rvtrace.py'}\nset trace target {rig.target_file}\n"
        f"target extended-remote :{rig.gdb_port}\n{TIMED}{commands}"
    )
    done = subprocess.run(
        [GDB, "-nx", "-q", "-batch", "-x", str(script), str(elf)], capture_output=True, text=True, check=False
    )
    found = re.findall(r"^@(\S+) (\S+)$", done.stdout, re.MULTILINE)
    if not found:
        sys.exit(done.stdout + done.stderr)
    return {name: float(seconds) for name, seconds in found}


START = """
trace start
hbreak rounds_done
set var rounds = {rounds}
continue
"""
FIRST = """
python timed("first", "trace history")
python timed("dump", "monitor dump_image {folder}/bytes {start} {size}")
"""
MORE = """
python timed("all", "trace history")
set var rounds = {more}
continue
python timed("more", "trace history")
python timed("dump", "monitor dump_image {folder}/bytes {start} {size}")
"""
BUFFER = 0x3000_0000
ROUND = 33  # bytes of trace, about


def measured(elf: Path, commands: str, rounds: int, size: int, dumped: int) -> dict[str, float]:
    """The seconds of *commands*, on a target with a buffer of *size* bytes that has done so many rounds."""
    with tempfile.TemporaryDirectory() as folder, Rig(elf, Path(folder), f"--trace-size={size}") as rig:
        text = (START + commands).format(rounds=rounds, more=120, folder=folder, start=BUFFER, size=dumped)
        return gdb_says(elf, rig, text)


CORESIGHT = """
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
to = ["bridge0"]
[[component]]
name = "bridge0"
type = "atb_bridge"
base = 0x20001000
id = 1
to = ["{sink}"]
[[component]]
name = "{sink}"
type = "coresight_tmc"
base = 0x20002000
"""
SINKS = {
    "etr": (f'mode = "SMEM"\nstart = {BUFFER:#x}\nsize = 0x10000', "", BUFFER),
    "etb": ('mode = "SRAM"', "[etb]\nsram_size = 0x10000\n", 0x8000_0000),
}
"""What the target description and the file of devices say of each, and memory of the same size to dump."""


def through_coresight(elf: Path, sink: str) -> dict[str, float]:
    """The seconds of the first `trace history` of a full ring of 64 KiB in a TMC, and of `dump_image`."""
    described, built, dumped = SINKS[sink]
    with tempfile.TemporaryDirectory() as folder:
        board, devices = Path(folder) / "board.toml", Path(folder) / "devices.toml"
        board.write_text(CORESIGHT.format(sink=sink) + described)
        devices.write_text(built)
        with Rig(elf, Path(folder), f"--target={board}", f"--devices={devices}") as rig:
            rounds = 0x2_0000 // ROUND
            text = (START + FIRST).format(rounds=rounds, folder=folder, start=dumped, size=0x1_0000)
            return gdb_says(elf, rig, text)


def without_jtag(elf: Path) -> float:
    """The bytes a second that rvtrace reads through an OpenOCD that has all answers ready."""
    with tempfile.TemporaryDirectory() as folder, Rig(elf, Path(folder)) as rig, OpenOcd(port=rig.tcl_port) as link:
        link.command("set ::ready {}; for {set i 0} {$i < 65536} {incr i} {lappend ::ready 0x12345678}")
        link.command("rename read_memory slow_read; proc read_memory {a w n args} {lrange $::ready 0 [expr {$n - 1}]}")
        begun = time.perf_counter()
        link.read_block(BUFFER, 1 << 22)
        return (1 << 22) / (time.perf_counter() - begun)


def main() -> None:
    size = int(float(sys.argv[1]) * (1 << 20)) if len(sys.argv) > 1 else 1 << 20
    with tempfile.TemporaryDirectory() as folder:
        elf = compile_program(Path(folder), HOME / "benchmarks" / "programs" / "growing.c", march=MARCH)
        found = measured(elf, FIRST, 0x2_0000 // ROUND, 0x1_0000, 0x1_0000)
        first, dump = found["first"], found["dump"]
        print(f"first rows of 64 KiB {first:.3f} s, dump_image {dump:.3f} s: {first / dump:.2f} (to reach: 1.2)")
        found = measured(elf, MORE, size * 7 // 10 // ROUND, size, 120 * ROUND)
        print(f"first rows of about {size * 7 // 10 >> 10} KiB {found['all']:.3f} s")
        print(f"rows after 4 KB more {found['more']:.3f} s, dump_image of 4 KB {found['dump']:.3f} s")
        for sink, how in (("etr", "memory"), ("etb", "RRD")):
            found = through_coresight(elf, sink)
            first, dump = found["first"], found["dump"]
            print(f"first rows of 64 KiB in an {sink.upper()} ({how}) {first:.3f} s, dump_image {dump:.3f} s: "
                  f"{first / dump:.2f}")  # fmt: skip
        speed = without_jtag(elf) / 1024
        print(f"without JTAG {speed:.0f} KiB/s: {speed / 33.9:.0f} times 33.9 KiB/s (to reach: 20)")


if __name__ == "__main__":
    main()
