"""Logs of real simulators, as their users write them."""

import subprocess
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.helpers.spike import spike_program
from tests.transport.simulated.hart.simulator_log import log_of
from tests.transport.simulated.hart.spike import device_tree, isa

PROGRAMS = Path(__file__).resolve().parents[2] / "programs" / "executed"
CLOCK = ("-icount", "shift=0,sleep=off")
"""QEMU's clock goes by instructions, so that interrupts come at the same places in every run."""


def spike_log(
    elf: Path, folder: Path, *options: str, extensions: str = "IMAC", priv: str = "mu", lines: int = 400_000
) -> Path:
    """What Spike logs of *elf* with these options (-l, --log-commits), at most so many lines."""
    xlen = ElfFile(elf).xlen
    tree = folder / "spike.dtb"
    tree.write_bytes(device_tree(xlen, extensions))
    command = [spike_program(), f"--isa={isa(xlen, extensions)}", f"--priv={priv}"]
    command += ["--pmpregions=0", f"--dtb={tree}", "-m0x80000000:0x8000000", *options, "--log={log}", str(elf)]
    return _written(command, folder / f"{elf.stem}{''.join(options)}.log", lambda log: islice(log, lines))


def qemu_log(
    elf: Path, folder: Path, *options: str, what: str = "exec,nochain,int", lines: int = 40_000, name: str = "qemu.log",
    harts: int = 1,
) -> Path:  # fmt: skip
    """What QEMU's `virt` board logs of *elf* under `-d` *what*, at most so many lines; of several *harts* until it has
    so many blocks of each: which of them runs first, and how often, is up to the machine.
    """
    xlen = ElfFile(elf).xlen
    command = [f"qemu-system-riscv{xlen}", "-M", "virt", "-m", "128M", "-bios", "none", "-kernel", str(elf)]
    command += ["-cpu", f"rv{xlen},pmp=false,mmu=false,h=false,s=false", "-display", "none", "-serial", "none"]
    command += ["-monitor", "none", "-smp", str(harts), *options, "-d", what, "-D", "{log}"]
    if harts > 1:
        return _written(command, folder / name, lambda log: _of_each(log, harts, lines))
    return _written(command, folder / name, lambda log: islice(log, lines))


def _of_each(log: Iterable[str], harts: int, blocks: int) -> Iterator[str]:
    left = {f"Trace {hart}:": blocks for hart in range(harts)}
    for line in log:
        yield line
        begin = line[: len("Trace 0:")]
        if begin in left:
            left[begin] -= 1
            if max(left.values()) <= 0:
                return


def _written(command: list[str], path: Path, some: Callable[[Iterable[str]], Iterable[str]]) -> Path:
    with log_of(command, subprocess.DEVNULL) as log, open(path, "w") as file:
        file.writelines(some(log))
    assert path.stat().st_size > 0, f"{command[0]} logged nothing"
    return path
