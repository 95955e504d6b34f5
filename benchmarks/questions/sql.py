"""What `rvtrace sql` costs: filling each table, and memory.

Run: python benchmarks/questions/sql.py [MILLION_INSTRUCTIONS ...]

The program "mixed" of `long_runs.py` runs for each length (default: 0.1, 1 and 10 million instructions) and is
imported; a process of its own opens it, finds the calls, and fills the tables one after the other. Figures are CPU
seconds, by how many MiB the process grew in all tables after it had decoded and found the calls, and rows.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import encoded
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.export import named
from rvtrace_gdb.session.exports.selection import ExportOptions, exported
from rvtrace_gdb.session.questions.sql.database import TraceDatabase
from rvtrace_gdb.session.questions.sql.schema import TABLES
from rvtrace_gdb.session.session import Session

_RVTRACE = Path(sys.executable).parent / "rvtrace"
_NAMES = [it.name for it in TABLES]


def main() -> None:
    lengths = [float(it) for it in sys.argv[1:]] or [0.1, 1.0, 10.0]
    heading = "".join(f"{name:>13}" for name in _NAMES)
    print(f"{'million':>8}{'decode':>8}{'calls':>8}{heading}{'rows':>10}{'decoded':>9}{'grew':>6} MiB")
    with tempfile.TemporaryDirectory() as name:
        for length in lengths:
            capture = imported(Path(name), length)
            subprocess.run([sys.executable, __file__, "--capture", capture, str(length)], check=True)


def imported(folder: Path, millions: float) -> Path:
    """Return a capture of so many instructions."""
    sys.argv[1:] = [str(millions), "HTM"]
    setting, items, elf = next(encoded(folder, "mixed"))
    raw, capture = folder / "raw.bin", folder / "x.rvt"
    raw.write_bytes(b"".join(setting.encode(items)))
    subprocess.run([_RVTRACE, "import", raw, "--ntrace", "--elf", elf, "-o", capture], check=True, capture_output=True)
    return capture


def measure(capture: Path, millions: float) -> None:
    """Print the row of a capture."""
    session = Session()
    begun = process_time()
    session.open(capture, None)
    trace = exported(session, Context(), named("sqlite"), ExportOptions())
    seconds = [process_time() - begun]
    begun = process_time()
    trace.calls()
    seconds.append(process_time() - begun)
    before, rows, filled = _mebibytes(), 0, []
    with TraceDatabase(trace) as database:
        for name in _NAMES:
            begun = process_time()
            rows += database.fill([name])
            filled.append(process_time() - begun)
    times = "".join(f"{it:>8.2f}" for it in seconds) + "".join(f"{it:>13.2f}" for it in filled)
    print(f"{millions:>8.1f}{times}{rows:>10}{before:>9.0f}{_mebibytes() - before:>6.0f}")


def _mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--capture"]:
        measure(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
