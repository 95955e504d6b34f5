"""How long gdb's steps by lines take in the past. Run: python -m benchmarks.gdb.steps [ROUNDS]

Loops of one line and an inlined function with so many rounds (default 200,000), traced as N-Trace, in the real gdb
(RVTRACE_GDB or gdb-multiarch; `trace open`, `trace replay`); and a breakpoint backward whose condition is false, so
many times. Beside it what gdb takes for an instruction if it steps itself (`set range-stepping off`), and for a hit if
it evaluates the condition itself (`set breakpoint condition-evaluation host`), in a trace of 60 rounds.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.console.main import main as rvtrace
from tests.decode.executed.logs import qemu_log
from tests.gdbext.gdb_process import GDB, gdb_environ
from tests.helpers.cross_compiler import HOME, compile_program

PROGRAM = HOME / "tests" / "programs" / "steps.c"
INSIDE = HOME / "benchmarks" / "gdb" / "in_gdb" / "stepping.py"
FEW = 60


def main() -> None:
    rounds = int(float(sys.argv[1])) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as folder:
        spared = measure(Path(folder), rounds, "on")
        own = measure(Path(folder), FEW, "off")
    print(f"{'':24}{'instructions':>14}{'seconds':>10}{'by itself: ms each':>22}")
    for name, (count, seconds) in spared.items():
        few, slow = own[name]
        print(f"{name:24}{count:>14,}{seconds:>10.3f}{1e3 * slow / max(few, 1):>22.2f}")


def measure(folder: Path, rounds: int, stepping: str) -> dict[str, tuple[int, float]]:
    """Instructions and seconds by the names of rows."""
    elf = compile_program(folder, PROGRAM, options=(f"-DROUNDS={rounds}",))
    capture, result = folder / "x.rvt", folder / "x.json"
    log = qemu_log(elf, folder, lines=8 * rounds + 2000)
    assert rvtrace(["encode", "--elf", str(elf), "--pcs", str(log), "-o", str(capture), "--quiet"]) == 0
    environ = gdb_environ(BENCHMARK_CAPTURE=str(capture), BENCHMARK_RESULT=str(result), BENCHMARK_SPARED=stepping)
    gdb = os.environ.get("RVTRACE_GDB", GDB)
    words = [gdb, "-q", "-nx", "-batch", str(elf), "-ex", f"source {HOME / 'rvtrace.py'}", "-x", str(INSIDE)]
    done = subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not result.exists():
        sys.exit(f"gdb failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    found: dict[str, tuple[int, float]] = json.loads(result.read_text())
    result.unlink()
    return found


if __name__ == "__main__":
    os.chdir(HOME)
    main()
