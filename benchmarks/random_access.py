"""What the last rows of a long trace cost, the first and the second time, beside decoding everything.

Run: python benchmarks/random_access.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

A trace of `long_runs.py` (default: 40 million instructions, a third of them of "random") is repeated 1, 10 and 30 times
and imported. Each figure is one process: CPU seconds, seconds, and the greatest memory. Ratios are those of CPU time to
the first time, in which everything is decoded and the index is written.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from long_runs import encoded

_LENGTHS = (1, 10, 30)
_OPTIONS = {"HTM": (), "HTM, times": ("--timestamps",), "BTM": ("--btm",)}
_RVTRACE = Path(sys.executable).parent / "rvtrace"


class ProcessCost(NamedTuple):
    cpu: float
    seconds: float
    mebibytes: float


def main() -> None:
    if len(sys.argv) < 2:
        sys.argv[1:] = ["40", "HTM"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RVTRACE_CACHE"] = str(folder / "cache")
        print(f"{'':24}{'MB':>6}{'':>10}{'CPU s':>8}{'s':>7}{'MiB':>6}{'ratio':>7}")
        for program in ("mixed", "random"):
            for setting, items, elf in encoded(folder, program):
                if setting.name not in _OPTIONS:
                    continue
                data, options = b"".join(setting.encode(items)), _OPTIONS[setting.name]
                for times in _LENGTHS:
                    raw, capture = folder / "raw.bin", folder / "x.rvt"
                    raw.write_bytes(data * times)
                    (folder / "cache").mkdir(exist_ok=True)
                    cost("import", raw, "--ntrace", *options, "--elf", elf, "-o", capture)
                    for index in (folder / "cache").iterdir():
                        index.unlink()
                    report(f"{program}, {setting.name}", len(data) * times, capture)


def report(name: str, size: int, capture: Path) -> None:
    """Lines for one trace."""
    first = cost("decode", capture, "-10")
    index = sum(file.stat().st_size for file in Path(os.environ["RVTRACE_CACHE"]).iterdir())
    again = cost("decode", capture, "-10")
    middle = cost("decode", capture, f"{100_000},+10")
    for what, found in (("first", first), ("second", again), ("a range", middle)):
        figures = f"{found.cpu:8.2f}{found.seconds:7.2f}{found.mebibytes:6.0f}{found.cpu / first.cpu:7.2f}"
        print(f"{name:24}{size / 1e6:6.1f}{what:>10}{figures}")
    print(f"{'':24}{'':6}{'index':>10} {index // 1024} KiB", flush=True)


def cost(*words: object) -> ProcessCost:
    """Of one command."""
    begin = time.monotonic()
    process = subprocess.Popen([_RVTRACE, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return ProcessCost(usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
