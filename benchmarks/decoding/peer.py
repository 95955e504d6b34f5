"""rvtrace beside the reference decoder of the N-Trace task group (NexRv), on the same bytes.

    PEER=FOLDER python benchmarks/decoding/peer.py [MEGABYTES [ELF TRACE.nex]]

FOLDER has the C sources of NexRv. The trace, by default one of the reference encoder's streams, is repeated to
MEGABYTES (default 2). CPU seconds of whole processes: NexRv decodes to bare addresses as text; `rvtrace decode`
writes its listing, rows as JSON, and the events alone, for which all is decoded, too. All go to /dev/null. Needs a C
compiler, and `riscv64-unknown-elf-objdump`, from whose text NexRv learns the program.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
REFERENCE = HOME / "tests" / "data" / "ntrace-reference"
OBJDUMP = "riscv64-unknown-elf-objdump"


def cpu(command: Sequence[str | Path], runs: int = 3) -> float:
    """The CPU seconds of the best of *runs* processes."""
    seconds = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def built_peer(sources: Path, folder: Path) -> Path:
    """NexRv, compiled as its makefile does."""
    program = folder / "NexRv"
    compiler = shutil.which("cc") or sys.exit("no C compiler to build the peer with")
    subprocess.run([compiler, "-O3", "-w", "-o", program, *sorted(sources.glob("*.c"))], check=True)
    return program


def main() -> None:
    peer = os.environ.get("PEER") or sys.exit("PEER is not set: the folder with the C sources of NexRv")
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 2_000_000
    elf, once = map(Path, sys.argv[2:4] or (REFERENCE / "dhrystone.elf", REFERENCE / "dhrystone.1.nex"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nexrv, trace, info, code = built_peer(Path(peer), folder), folder / "x.nex", folder / "info", folder / "objd"
        trace.write_bytes(once.read_bytes() * max(size // once.stat().st_size, 1))
        with open(code, "w") as text:
            subprocess.run([OBJDUMP, "-d", elf], check=True, stdout=text)
        subprocess.run([nexrv, "-conv", "-objd", code, "-pcinfo", info], check=True, stdout=subprocess.DEVNULL)
        theirs = cpu([nexrv, "-deco", trace, "-pcinfo", info, "-pcout", "/dev/null", "-none"])
        print(f"{trace.stat().st_size} bytes of {once.name}; CPU seconds, and as multiples of NexRv's")
        print(f"  {'NexRv, bare addresses':40}{theirs:8.3f}")
        rvtrace, capture = [sys.executable, "-m", "rvtrace_gdb"], folder / "x.rvt"
        subprocess.run([*rvtrace, "import", trace, "--elf", elf, "-o", capture], check=True, stdout=subprocess.DEVNULL)
        for what in ("", "--json", "--events"):
            ours = cpu([*rvtrace, "decode", capture, *filter(None, [what])])
            print(f"  {f'rvtrace decode {what}':40}{ours:8.3f}{ours / theirs:8.2f}", flush=True)


if __name__ == "__main__":
    main()
