"""Whether the cost of listings grows with the trace alone: of a trace, of one that is ten or a hundred times as long.

Run: python benchmarks/lists/lengths.py [LENGTHS [PART_OF_A_LISTING]]  (LENGTHS by default 1,10; 1,10,100 takes minutes)

The streams are the reference encoder's and a real core's, repeated: of length 1 so often that it takes longer than the
start of the process. Each figure is a process of its own: the CPU seconds of the start, which are those of a listing of
the streams once, then with the kernel those of the listing without the start; how many times that is for each length
what it is for the shortest one (1.0: it grows with the trace alone; `decode -10` is to grow less, as it decodes what it
shows alone where there is an index); and the most memory in MiB. Of the shortest length, how many times as long it
takes without the kernel; what is written has to have the same checksum then.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
NTRACE, TANDEM = DATA / "ntrace-reference" / "dhrystone", DATA / "tandem" / "flute_rv64ui-v-add.tvt"
_ELF = ("--elf", f"{NTRACE}.elf")
_COPIES = 20  # of the streams, in one of length 1
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
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RVTRACE_CACHE"] = os.path.join(folder, "cache")
        titles = f"{'length':>8}{'MB out':>9}{'start':>8}{'CPU s':>9}{'/length':>9}{'MiB':>7}{'Python':>8}  checksum"
        print(f"{'':24}{titles}")
        for name, words in LISTINGS.items():
            if wanted in name:
                measure(name, words, lengths, Path(folder))


def measure(name: str, words: tuple[str, ...], lengths: list[int], folder: Path) -> None:
    """A line for each length."""
    start = min(written(words, folder, 1).cpu for _ in range(2))
    shortest = 0.0
    for length in lengths:
        compiled = written(words, folder, length * _COPIES)
        cpu = max(compiled.cpu - start, 0.001)
        cells = f"{compiled.megabytes:9.1f}{start:8.2f}{cpu:9.2f}"
        if not shortest:
            shortest = cpu / length
            python = written(words, folder, length * _COPIES, kernel="0")
            assert compiled.checksum == python.checksum, f"{name}: something else is written without the kernel"
            without = f"{max(python.cpu - start, 0) / cpu:8.1f}"
        else:
            without = f"{'':8}"
        cells += f"{cpu / length / shortest:9.2f}{compiled.mebibytes:7.0f}{without}  {compiled.checksum[:12]}"
        print(f"{name:24}{length:8}{cells}", flush=True)


def written(words: tuple[str, ...], folder: Path, copies: int, kernel: str = "1") -> Listed:
    """What one command writes of so many copies of the streams, and what that costs."""
    (folder / "x.nex").write_bytes(Path(f"{NTRACE}.1.nex").read_bytes() * copies)
    (folder / "x.tvt").write_bytes(TANDEM.read_bytes() * copies)
    return listed(words, folder, kernel)


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
