"""What the last rows of a long trace cost, the first and the second time, beside decoding everything.

Run: python benchmarks/lists/random_access.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

A trace of `long_runs.py` (default: 40 million instructions, a third of them of "random") is repeated 1, 10 and 30 times
and imported. Each figure is one process: CPU seconds, seconds, and the greatest memory. Ratios are those of CPU time to
the first time, in which everything is decoded and the index is written.

The trace that is not repeated is also opened in gdb twice, with the registers of its beginning, so that it has values:
CPU seconds of gdb and of rvtrace's session together for each command. The first time the hart is executed from there.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import encoded
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from tests.gdbext.gdb_process import GDB, gdb_environ
from tests.helpers.cross_compiler import HOME

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
                    if times == 1:
                        report_gdb(capture, elf)


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


def report_gdb(capture: Path, elf: Path) -> None:
    """Lines for the same in gdb, of a hart whose registers are 0 at the program's entry."""
    entry = SavedRegisters(0, SavedAt.START, Image.from_elf(elf).entry, {0x1000 + n: 0 for n in range(1, 32)}, True, 3)
    ram = MemoryRange(0x8000_0000, 1 << 27, MemoryKind.RAM)
    with_values = capture.with_name("values.rvt")
    save(replace(load(capture), registers=(entry,), ranges=(ram,)), with_values)
    first, again = in_gdb(with_values, elf), in_gdb(with_values, elf)
    for what, found in (("first", first), ("second", again)):
        parts = ", ".join(f"{name} {spent:.2f}" for name, spent in found.items() if name != "memory")
        print(f"{'  in gdb':30}{what:>10}  {parts}; {found['memory']:.0f} MiB")
    ratio = sum(again[name] for name in ("open", "replay", "end")) / sum(first[it] for it in ("open", "replay", "end"))
    print(f"{'':30}{'ratio':>10}  open, replay and end: {ratio:.3f}", flush=True)


def in_gdb(capture: Path, elf: Path) -> dict[str, float]:
    """The figures of `in_gdb/entering.py`."""
    result = capture.with_suffix(".json")
    environ = gdb_environ(
        BENCHMARK_CAPTURE=str(capture),
        BENCHMARK_RESULT=str(result),
        RVTRACE_CACHE=os.environ["RVTRACE_CACHE"],
        RVTRACE_PYTHON=sys.executable,
    )
    inside = HOME / "benchmarks" / "gdb" / "in_gdb" / "entering.py"
    words = [GDB, "-q", "-nx", "-batch", str(elf), "-ex", f"source {HOME / 'rvtrace.py'}", "-x", str(inside)]
    subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    found: dict[str, float] = json.loads(result.read_text())
    return found


def cost(*words: object) -> ProcessCost:
    """Of one command."""
    begin = time.monotonic()
    process = subprocess.Popen([_RVTRACE, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return ProcessCost(usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
