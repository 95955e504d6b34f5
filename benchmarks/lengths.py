"""Whether the cost of listings grows with the trace alone: of a trace, of one that is ten or a hundred times as long.

Run: python benchmarks/lengths.py [LENGTHS [PART_OF_A_LISTING]]   (LENGTHS by default 1,10; 1,10,100 takes minutes)

The streams are the reference encoder's and a real core's, repeated. Each figure is a process of its own: CPU seconds
with the kernel, how many times that is without it, the CPU milliseconds for each further length since the line before,
which should not grow, and the most memory in MiB. What is written has to have the same checksum with the kernel and
without.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
NTRACE, TANDEM = DATA / "ntrace-reference" / "dhrystone", DATA / "tandem" / "flute_rv64ui-v-add.tvt"
_ELF = ("--elf", f"{NTRACE}.elf")
_FLUTE = ("--dialect", "flute", "--xlen", "64", "--flen", "64")
LISTINGS = {
    "decode": ("decode", "x.nex", "--ntrace", *_ELF),
    "decode --json": ("decode", "x.nex", "--ntrace", "--json", *_ELF),
    "decode --events": ("decode", "x.nex", "--ntrace", "--events", *_ELF),
    "decode -10": ("decode", "x.nex", "-10", "--ntrace", *_ELF),
    "dump": ("dump", "x.nex", "--ntrace"),
    "dump --json": ("dump", "x.nex", "--ntrace", "--json"),
    "tandem show": ("tandem", "show", "x.tvt", *_FLUTE),
    "tandem show --json": ("tandem", "show", "x.tvt", "--json", *_FLUTE),
}


class Listed(NamedTuple):
    """*megabytes* were written."""

    cpu: float
    megabytes: float
    mebibytes: float
    checksum: str


def main() -> None:
    lengths = [int(length) for length in (sys.argv[1] if len(sys.argv) > 1 else "1,10").split(",")]
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{'':24}{'length':>8}{'MB out':>9}{'CPU s':>9}{'Python':>8}{'ms/more':>10}{'MiB':>7}  checksum")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RVTRACE_CACHE"] = os.path.join(folder, "cache")
        for name, words in LISTINGS.items():
            if wanted in name:
                measure(name, words, lengths, Path(folder))


def measure(name: str, words: tuple[str, ...], lengths: list[int], folder: Path) -> None:
    """A line for each length."""
    shorter, before = 0, 0.0
    for length in lengths:
        (folder / "x.nex").write_bytes(Path(f"{NTRACE}.1.nex").read_bytes() * length)
        (folder / "x.tvt").write_bytes(TANDEM.read_bytes() * length)
        compiled, python = (listed(words, folder, kernel) for kernel in "10")
        assert compiled.checksum == python.checksum, f"{name}: something else is written without the kernel"
        cells = f"{compiled.megabytes:9.1f}{compiled.cpu:9.2f}{python.cpu / compiled.cpu:8.1f}"
        more = f"{1e3 * (compiled.cpu - before) / (length - shorter):10.1f}" if shorter else f"{'':10}"
        cells += f"{more}{compiled.mebibytes:7.0f}  {compiled.checksum[:12]}"
        print(f"{name:24}{length:8}{cells}", flush=True)
        shorter, before = length, compiled.cpu


def listed(words: tuple[str, ...], folder: Path, kernel: str) -> Listed:
    """What one command writes, and what that costs."""
    command = [sys.executable, "-m", "rvtrace_gdb", *words]
    environ = os.environ | {"RVTRACE_KERNEL": kernel}
    digest, size = hashlib.sha256(), 0
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    while some := os.read(process.stdout.fileno(), 1 << 20):
        digest.update(some)
        size += len(some)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {process.returncode}")
    return Listed(usage.ru_utime + usage.ru_stime, size / 1e6, usage.ru_maxrss / 1024, digest.hexdigest())


if __name__ == "__main__":
    main()
