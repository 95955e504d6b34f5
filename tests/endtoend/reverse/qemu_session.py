"""A program in the real QEMU, a gdb connected through rvtrace, and what QEMU's own log says ran.

The log is read here without rvtrace's reader of such logs: with -singlestep each line is one instruction. Source:
QEMU's documentation of -d exec; accel/tcg/cpu-exec.c and translate-all.c for the two lines that take one back.

As a program: `python qemu_session.py LOG HART` prints the addresses, for `rvtrace encode --pcs`.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

_TRACE = re.compile(rb"Trace (\d+): 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")
_RAM = 0x80000000
_HOME = Path(__file__).resolve().parents[3]


def ran(log: Path, hart: int = 0) -> list[int]:
    """The addresses of what a hart retired, but for the boot ROM."""
    pcs: list[int] = []
    newest = hart
    for line in log.read_bytes().splitlines():
        match = _TRACE.match(line)
        if match:
            newest = int(match[1])
            if newest == hart:
                pcs.append(int(match[2], 16))
        elif line.startswith((b"Stopped execution", b"cpu_io_recompile: rewound")) and newest == hart:
            pcs.pop()  # it was about to run, or runs again: an access to a device
    return [pc for pc in pcs if pc >= _RAM]


def captures(elf: Path, log: Path, folder: Path, harts: Sequence[int]) -> str:
    """A command line of the shell: what is in the log by now becomes the capture now.rvt."""
    rvtrace = f"PYTHONPATH={_HOME} {sys.executable} -m rvtrace_gdb"
    lines = ["unset PYTHONHOME PYTHONPATH", f"cd {folder}"]  # those of gdb's own Python
    for hart in harts:
        lines += [f"{sys.executable} {__file__} {log} {hart} > {hart}.pcs"]
        made = f"{rvtrace} encode --elf {elf} --pcs {hart}.pcs --format pcs"
        lines += [f"{made} -o now.rvt" if len(harts) == 1 else f"{made} --src-bits 4 --src-id {hart} -o {hart}.raw"]
    if len(harts) > 1:
        raws = " ".join(f"{hart}.raw" for hart in harts)
        lines += [f"cat {raws} > all.raw", f"{rvtrace} import all.raw --elf {elf} --src-bits 4 -o now.rvt"]
    return " && ".join(lines) + " > made.txt 2>&1"


if __name__ == "__main__":
    sys.stdout.writelines(f"{pc:x}\n" for pc in ran(Path(sys.argv[1]), int(sys.argv[2])))
