"""How fast gdb goes through a tandem trace: places, steps, watchpoints.

Run: python -m benchmarks.gdb.tandem_gdb [GROUPS]

A program that Spike runs for so many instructions (default 1,000,000), as a tandem trace, in the real gdb (`trace
open`, `trace replay`): CPU time of gdb and rvtrace together, with printing. Ratios say more than times, which depend
on the machine: the same in a trace of a hundredth of the length, and with a breakpoint in place of a watchpoint. Of
several runs the median.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture.file import dump
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from tests.decode.executed.logs import spike_log
from tests.gdbext.gdb_process import GDB, gdb_environ
from tests.helpers.commit_logs import encode_log
from tests.helpers.cross_compiler import HOME, compile_program

PROGRAM = HOME / "benchmarks" / "programs" / "watched.c"
INSIDE = HOME / "benchmarks" / "gdb" / "in_gdb" / "moving.py"
ROWS = {
    "open": "decode: trace open, trace replay",
    "goto": "trace goto NUMBER, anywhere",
    "stepi": "stepi",
    "reverse-stepi": "reverse-stepi",
    "watch far back": "reverse-continue to a watchpoint, over everything",
    "watch far": "continue to a watchpoint, over everything",
    "watch rare": "reverse-continue to a watchpoint, 16,384 rounds",
    "break far back": "reverse-continue to a breakpoint, over everything",
    "read rare": "reverse-continue to a read watchpoint, 16,384 rounds",
    "condition": "a hit whose condition is false",
    "software": "a step of a watchpoint on a register",
    "software back": "the same, backward",
    "next": "next, with a watchpoint elsewhere",
}


def main() -> None:
    groups = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        elf = compile_program(Path(folder), PROGRAM)
        begin = time.perf_counter()
        log = spike_log(elf, Path(folder), "--log-commits", lines=groups)
        short = log.with_name("short.log")
        with open(log) as whole, open(short, "w") as part:
            part.writelines(line for _, line in zip(range(groups // 100), whole, strict=False))
        sizes = [capture(elf, path) for path in (log, short)]
        print(f"made a trace of {groups:,} groups ({sizes[0] / 1e6:.1f} MB) in {time.perf_counter() - begin:.0f} s")
        measured = [measure(elf, path.with_suffix(".rvt")) for path in (log, short)]
    print(f"{'CPU milliseconds each':54}{groups:>12,}{groups // 100:>12,}{'ratio':>8}")
    for name, text in ROWS.items():
        times = [1e3 * found[name] for found in measured]
        print(f"{text:54}{times[0]:12.2f}{times[1]:12.2f}{times[0] / times[1]:8.1f}")
    far = measured[0]
    print(f"to a watchpoint / to a breakpoint, over everything: {far['watch far back'] / far['break far back']:.2f}")
    print(f"stepping backward / forward: {far['reverse-stepi'] / far['stepi']:.2f}")


def capture(elf: Path, log: Path) -> int:
    """The capture beside *log*; how many bytes its trace has."""
    made, parameters = bytearray(), TandemParameters.of_elf(elf)
    with Log(str(log)) as lines:
        encode_log(CommitLog(lines, parameters.xlen), GroupEncoder(parameters, made.extend))
    found = tandem_capture(log.name, bytes(made), parameters, Image.from_elf(elf))
    log.with_suffix(".rvt").write_bytes(dump(found))
    return len(made)


def measure(elf: Path, capture: Path) -> dict[str, float]:
    """Seconds by the names of ROWS."""
    result = capture.with_suffix(".json")
    environ = gdb_environ(BENCHMARK_CAPTURE=str(capture), BENCHMARK_RESULT=str(result))
    words = [GDB, "-q", "-nx", "-batch", str(elf), "-ex", f"source {HOME / 'rvtrace.py'}", "-x", str(INSIDE)]
    done = subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not result.exists():
        sys.exit(f"gdb failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(result.read_text())
    return found


if __name__ == "__main__":
    os.chdir(HOME)
    main()
