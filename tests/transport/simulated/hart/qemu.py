"""QEMU as a second reference: the program counters of what it executes.

`-singlestep` makes every instruction a translation block of its own, `-d exec,nochain` logs each block that is entered
and `int` each trap. An instruction that traps is logged and then taken back by the trap at its address; one that QEMU
abandons (to see to something else, or to do device accesses its own way) is taken back too and entered again.
Interrupts are asynchronous traps.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.transport.simulated.hart.simulator_log import log_of


class QemuTrap(NamedTuple):
    epc: int
    cause: int
    interrupt: bool


Step = int | QemuTrap
"""A program counter, or a trap."""

_EXEC = re.compile(r"Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")
_TRAP = re.compile(r"riscv_cpu_do_interrupt: hart:\d+, async:(\d), cause:([0-9a-f]+), epc:0x([0-9a-f]+)")
_ABANDONED = ("Stopped execution of TB chain", "cpu_io_recompile: rewound execution")
_BOOT_ROM_END = 0x2000


def run_qemu(elf: Path, steps: int, options: tuple[str, ...] = ()) -> list[Step]:
    """The first *steps* of *elf* on QEMU's `virt` board with M and U mode, without MMU and PMP; its boot ROM is cut."""
    xlen = ElfFile(elf).xlen
    command = [f"qemu-system-riscv{xlen}", "-M", "virt", "-m", "128M", "-bios", "none", "-kernel", str(elf)]
    command += ["-cpu", f"rv{xlen},pmp=false,mmu=false,h=false,s=false", "-display", "none", "-serial", "none"]
    command += ["-monitor", "none", "-singlestep", "-d", "exec,nochain,int", "-D", "{log}", *options]
    with log_of(command, subprocess.DEVNULL) as lines:
        taken = list(islice(_steps(lines), steps))
    assert len(taken) == steps, f"QEMU did not run {elf}"
    return taken


def _steps(lines: Iterable[str]) -> Iterator[Step]:
    """One step late, because the next line may take it back."""
    pending: int | None = None
    for line in lines:
        if found := _EXEC.match(line):
            if pending is not None:
                yield pending
            pc = int(found[1], 16)
            pending = pc if pc >= _BOOT_ROM_END else None
        elif found := _TRAP.match(line):
            interrupt, cause, epc = found[1] == "1", int(found[2], 16), int(found[3], 16)
            if pending is not None and (interrupt or pending != epc):
                yield pending
            pending = None
            yield QemuTrap(epc, cause & 0xFF, interrupt)
        elif line.startswith(_ABANDONED):
            pending = None
