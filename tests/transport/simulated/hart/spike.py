"""Spike as the reference for the simulated hart: runs programs and reads its execution log.

Spike asks the `dtc` program to compile its device tree; we give it a compiled one (Devicetree Specification 0.4,
chapter 5) and need no `dtc`.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.helpers.spike import spike_program
from tests.transport.simulated.hart.simulator_log import log_of

Memory = tuple[tuple[int, int], ...]

MAIN_MEMORY: Memory = ((0x8000_0000, 128 << 20),)
BOOT_INSTRUCTIONS = 5
CLINT_BASE = 0x0200_0000
_ISA = {64: "rv64", 32: "rv32"}


@dataclass
class Commit:
    """One retired instruction and what it changed, as Spike logs it."""

    pc: int
    word: int
    privilege: int
    x: dict[int, int] = field(default_factory=dict)
    f: dict[int, int] = field(default_factory=dict)
    csrs: dict[int, int] = field(default_factory=dict)
    stores: list[tuple[int, int, int]] = field(default_factory=list)
    """(address, bytes, value)"""
    loads: list[int] = field(default_factory=list)
    """addresses"""


class SpikeTrap(NamedTuple):
    """A trap: its name for an exception ("illegal_instruction"), its number for an interrupt."""

    epc: int
    name: str | int


Step = Commit | SpikeTrap


class SpikeRun(NamedTuple):
    """What Spike executed after its boot ROM, and the integer registers the boot ROM left."""

    x: list[int]
    steps: list[Step]


_COMMIT = re.compile(r"core +0: (\d) 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(.*)")
_TEXT = re.compile(r"core +0: 0x[0-9a-f]+ \(0x([0-9a-f]+)\) (.+)")
_TRAP = re.compile(r"core +0: exception (?:trap_(\w+)|interrupt #(\d+)), epc 0x([0-9a-f]+)")
_WRITE = re.compile(r" (x|f|c)(\d+)(?:_\w+)? +0x([0-9a-f]+)")
_STORE = re.compile(r" mem 0x([0-9a-f]+) 0x([0-9a-f]+)")
_LOAD = re.compile(r" mem 0x([0-9a-f]+)(?![0-9a-f]| 0x)")


def isa(xlen: int, extensions: str) -> str:
    return f"{_ISA[xlen]}{extensions.lower()}_zicsr_zifencei_zicntr"


def run_spike(
    elf: Path, folder: Path, extensions: str = "IMAFDC", *, steps: int = 1_000_000, memory: Memory = MAIN_MEMORY,
    priv: str = "mu", texts: dict[int, str] | None = None,
) -> SpikeRun:  # fmt: skip
    """What Spike executes of *elf* with M and U mode, or those of *priv*, and no PMP, from its entry to the end the
    program signals through HTIF, but no more than *steps*. *memory*: (base, size) of RAM regions, in pages.
    *texts*: gets the disassembly of each instruction, by its code."""
    xlen = ElfFile(elf).xlen
    tree = folder / "spike.dtb"
    tree.write_bytes(device_tree(xlen, extensions))
    # A pipe, not a file: `--instructions` ends the run at the first trap, so the run is ended by reading no more.
    command = [spike_program(), f"--isa={isa(xlen, extensions)}", f"--priv={priv}"]
    command += ["--pmpregions=0", f"--dtb={tree}", "-m" + ",".join(f"{base:#x}:{size:#x}" for base, size in memory)]
    command += ["-l", "--log-commits", "--log={log}", str(elf)]
    with open(folder / "spike.err", "w+") as errors:
        with log_of(command, errors) as lines:
            taken = list(islice(_steps(lines, texts), BOOT_INSTRUCTIONS + steps))
        errors.seek(0)
        assert len(taken) > BOOT_INSTRUCTIONS, f"Spike did not run {elf}: {errors.read()}"
    boot, run = taken[:BOOT_INSTRUCTIONS], taken[BOOT_INSTRUCTIONS:]
    x = [0] * 32
    for step in boot:
        assert isinstance(step, Commit) and step.pc < 0x1020, f"{step} is not in the boot ROM"
        for number, value in step.x.items():
            x[number] = value
    return SpikeRun(x, run)


def _steps(lines: Iterable[str], texts: dict[int, str] | None) -> Iterator[Step]:
    for line in lines:
        if texts is not None and (disassembled := _TEXT.match(line)):
            texts[int(disassembled[1], 16)] = disassembled[2].strip()
        if found := _COMMIT.match(line):
            privilege, pc, word, rest = found.groups()
            yield _commit(Commit(int(pc, 16), int(word, 16), int(privilege)), rest)
        elif found := _TRAP.match(line):
            exception, interrupt, epc = found.groups()
            yield SpikeTrap(int(epc, 16), exception or int(interrupt))


def _commit(commit: Commit, rest: str) -> Commit:
    files = {"x": commit.x, "f": commit.f, "c": commit.csrs}
    for kind, number, value in _WRITE.findall(rest):
        files[kind][int(number)] = int(value, 16)
    commit.stores += [(int(address, 16), len(value) // 2, int(value, 16)) for address, value in _STORE.findall(rest)]
    commit.loads += [int(address, 16) for address in _LOAD.findall(rest)]
    return commit


def without_htif_waits(run: SpikeRun, fromhost: int) -> SpikeRun:
    """Spike answers an HTIF command after a while, our hart at once: drop the rounds of the loop that waits for it (a
    load of zero from *fromhost* and a branch back to it)."""
    steps = iter(run.steps)
    kept = []
    for step in steps:
        if isinstance(step, Commit) and step.loads == [fromhost] and 0 in step.x.values():
            next(steps, None)
        else:
            kept.append(step)
    return SpikeRun(run.x, kept)


_BEGIN_NODE, _END_NODE, _PROP, _END = 1, 2, 3, 9
Tree = dict[str, "Tree | tuple[int, ...] | str"]


def device_tree(xlen: int, extensions: str) -> bytes:
    """The devices Spike is to have: one core and a CLINT where ours is."""
    cpu: Tree = {
        "device_type": "cpu", "reg": (0,), "status": "okay", "compatible": "riscv", "riscv,isa": isa(xlen, extensions),
        "riscv,pmpregions": (0,), "interrupt-controller": {"interrupt-controller": (), "phandle": (1,)},
    }  # fmt: skip
    root: Tree = {
        "#address-cells": (2,), "#size-cells": (2,), "compatible": "ucbbar,spike-bare-dev",
        "cpus": {"#address-cells": (1,), "#size-cells": (0,), "timebase-frequency": (10_000_000,), "cpu@0": cpu},
        "soc": {
            "#address-cells": (2,), "#size-cells": (2,), "compatible": "simple-bus", "ranges": (),
            "clint@2000000": {
                "compatible": "riscv,clint0", "interrupts-extended": (1, 3, 1, 7), "reg": (0, CLINT_BASE, 0, 0xC0000),
            },
        },
    }  # fmt: skip
    names: dict[str, int] = {}
    structure = _node("", root, names) + struct.pack(">I", _END)
    strings = b"".join(name.encode() + b"\0" for name in names)
    start = 40 + 16  # the header and an empty memory reservation block
    sizes = (len(strings), len(structure))
    total = start + sum(sizes)
    header = struct.pack(">10I", 0xD00DFEED, total, start, start + sizes[1], 40, 17, 16, 0, *sizes)
    return header + bytes(16) + structure + strings


def _node(name: str, node: Tree, names: dict[str, int]) -> bytes:
    out = struct.pack(">I", _BEGIN_NODE) + _padded(name.encode() + b"\0")
    for key, value in sorted(node.items(), key=lambda item: isinstance(item[1], dict)):
        if isinstance(value, dict):
            out += _node(key, value, names)
            continue
        offset = names.setdefault(key, sum(len(known) + 1 for known in names))
        data = value.encode() + b"\0" if isinstance(value, str) else struct.pack(f">{len(value)}I", *value)
        out += struct.pack(">3I", _PROP, len(data), offset) + _padded(data)
    return out + struct.pack(">I", _END_NODE)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
