"""A program that Spike ran: what its own log says of every instruction, and the same as a tandem trace.

The log is read here without rvtrace's readers. Source: riscv-isa-sim, riscv/execute.cc (commit_log_print_insn).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture.file import dump
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from tests.decode.executed.logs import spike_log
from tests.helpers.commit_logs import encode_log
from tests.helpers.cross_compiler import HOME, compile_program

SOURCE = HOME / "tests" / "programs" / "watch" / "watched.c"
_LINE = re.compile(r"core +0: \d 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(.*)")
_ACCESS = re.compile(r" mem 0x([0-9a-f]+)(?: 0x([0-9a-f]+))?")
_REGISTER = re.compile(r" x(\d+) +0x([0-9a-f]+)")


class Accessed(NamedTuple):
    """*data*: what was stored, None for a load."""

    address: int
    size: int
    data: bytes | None


class Step(NamedTuple):
    """An instruction that retired."""

    pc: int
    accesses: tuple[Accessed, ...]
    registers: dict[int, int]

    def touches(self, kind: str, address: int, size: int) -> bool:
        """Whether a watchpoint of gdb's *kind* on *size* bytes triggers."""
        return any(
            kind == "awatch" or (kind == "watch") == (it.data is not None)
            for it in self.accesses
            if it.address < address + size and address < it.address + it.size
        )


class Spiked:
    """*steps*: until the program is at `done`. The history of *trace* has these and no others."""

    def __init__(self, folder: Path, march: str, source: Path = SOURCE, lines: int = 4000) -> None:
        self.elf = compile_program(folder, source, march=march)
        self.xlen = 64 if "64" in march else 32
        self.log = spike_log(self.elf, folder, "--log-commits", lines=lines)
        text = self.log.read_text().splitlines()
        end = next(i for i, line in enumerate(text) if i and line == text[i - 1])  # j done
        self.log.write_text("\n".join(text[:end]) + "\n")
        self.steps = [self._step(line) for line in text[:end]]
        self.parameters = TandemParameters.of_elf(self.elf)
        made = bytearray()
        with Log(str(self.log)) as log:
            encode_log(CommitLog(log, self.xlen), GroupEncoder(self.parameters, made.extend))
        self.trace = bytes(made)
        self.image = Image.from_elf(self.elf)
        self.capture = folder / "spiked.rvt"
        self.capture.write_bytes(dump(tandem_capture("spiked.tvt", self.trace, self.parameters, self.image)))

    def _step(self, line: str) -> Step:
        found = _LINE.match(line)
        assert found is not None, line
        mask, word = (1 << self.xlen) - 1, int(found[2], 16)
        accesses = [
            Accessed(int(at, 16) & mask, _loaded(word), None)
            if not data
            else Accessed(int(at, 16) & mask, len(data) // 2, int(data, 16).to_bytes(len(data) // 2, "little"))
            for at, data in _ACCESS.findall(found[3])
        ]
        registers = {int(n): int(value, 16) & mask for n, value in _REGISTER.findall(found[3])}
        return Step(int(found[1], 16) & mask, tuple(accesses), registers)

    def values(self, address: int, size: int) -> list[bytes | None]:
        """What some bytes hold before each step, and at the end; None as long as not all of them were stored to."""
        held: list[int | None] = [None] * size
        found: list[bytes | None] = []
        for step in [*self.steps, None]:
            found.append(None if None in held else bytes(byte or 0 for byte in held))
            for it in step.accesses if step else ():
                for i, byte in enumerate(it.data or b"", it.address - address):
                    if 0 <= i < size:
                        held[i] = byte
        return found


def changes(values: Sequence[object]) -> list[int]:
    """The steps that change something, of what it is before each."""
    return [i for i in range(len(values) - 1) if values[i] != values[i + 1]]


def _loaded(word: int) -> int:
    """Bytes of a load or an atomic operation: RISC-V ISA, "RV32/64G Instruction Set Listings", "C"."""
    if word & 3 == 3:
        return 1 << (word >> 12 & 3)
    return {2: 4, 3: 8}[word >> 13]  # c.lw, c.lwsp, c.ld, c.ldsp
