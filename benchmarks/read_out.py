"""What the trace of a live target costs in gdb, through the real OpenOCD: a full buffer, and a little more later.

    python benchmarks/read_out.py [MEBIBYTES]

Prints seconds, and how they compare with OpenOCD's `dump_image` of the same bytes, measured in the same gdb: the first
`trace history` of a buffer of 64 KiB, and another after a few kilobytes more in a buffer of MEBIBYTES (default 1).
Needs gdb, openocd and the cross compiler.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rvtrace_gdb.console.bench.rig import Rig
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


if __name__ == "__main__":
    main()
