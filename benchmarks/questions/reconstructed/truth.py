"""What Spike executed, instruction by instruction, in arrays; and the hart's whole state at any of them."""

import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.executed.spike import CAUSES, CUSTOM_CAUSE
from rvtrace_gdb.decode.program.image import Image

_COMMIT = re.compile(r"core +0: (\d) 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(?: x(\d+) +0x([0-9a-f]+))?(.*)")
_TRAP = re.compile(r"core +0: exception (?:trap_(\w+)|interrupt #(\d+)), epc 0x([0-9a-f]+)")
_WRITE = re.compile(r" ([xfc])(\d+)(?:_\w+)? +0x([0-9a-f]+)")
_STORE = re.compile(r" mem 0x([0-9a-f]+) 0x([0-9a-f]+)")
_LOAD = re.compile(r" mem 0x([0-9a-f]+)(?![0-9a-f]| 0x)")
BOX = (1 << 64) - 1
FFLAGS, FRM, FCSR, MSTATUS, MEPC, MCAUSE, MTVAL = 1, 2, 3, 0x300, 0x341, 0x342, 0x343


class TakenTrap(NamedTuple):
    """A trap before the instruction at *position*. *cause*: as in mcause."""

    position: int
    epc: int
    cause: int


class Effects(NamedTuple):
    """What an instruction did besides writing one x register: registers ("x", "f" or "c", number, value), stores
    (address, size, value), addresses of loads.
    """

    registers: list[tuple[str, int, int]]
    stores: list[tuple[int, int, int]]
    loads: list[int]


_NOTHING = Effects([], [], [])


class Run:
    """The execution of a program after Spike's boot ROM. *x*: the registers the ROM left.

    rd, values  the x register that each instruction writes, -1 for none, and its value
    others      by position, what it does besides
    """

    def __init__(self, log: Iterable[str], xlen: int, boot: int = 5) -> None:
        self.xlen, self.x = xlen, [0] * 32
        self.pcs, self.words, self.rd, self.values = array("Q"), array("I"), array("b"), array("Q")
        self.others: dict[int, Effects] = {}
        self.traps: list[TakenTrap] = []
        for line in log:
            found = _COMMIT.match(line)
            if found is not None and boot:
                boot -= 1
                if found[4]:
                    self.x[int(found[4])] = int(found[5], 16)
            elif found is not None:
                self._commit(found)
            elif found := _TRAP.match(line):
                self._trap(found)

    def __len__(self) -> int:
        return len(self.pcs)

    def _commit(self, found: re.Match[str]) -> None:
        _, pc, word, rd, value, rest = found.groups()
        if rest.strip():
            registers = [(kind, int(number), int(digits, 16)) for kind, number, digits in _WRITE.findall(rest)]
            stores = [(int(at, 16), len(digits) // 2, int(digits, 16)) for at, digits in _STORE.findall(rest)]
            loads = [int(at, 16) for at in _LOAD.findall(rest)]
            self.others[len(self.pcs)] = Effects(registers, stores, loads)
        self.pcs.append(int(pc, 16))
        self.words.append(int(word, 16))
        self.rd.append(int(rd) if rd else -1)
        self.values.append(int(value, 16) if rd else 0)

    def _trap(self, found: re.Match[str]) -> None:
        name, interrupt, epc = found.groups()
        cause = CAUSES.get(name.encode(), CUSTOM_CAUSE) if name else int(interrupt) | 1 << self.xlen - 1
        self.traps.append(TakenTrap(len(self.pcs), int(epc, 16), cause))

    def effects(self, position: int) -> Effects:
        return self.others.get(position, _NOTHING)


class Truth:
    """The state of Spike's hart before the instruction at *position*; it only goes forward.

    csrs    as far as they are known, mstatus not behind a trap
    memory  the whole RAM from *base* on
    """

    def __init__(self, run: Run, image: Image, ram: tuple[int, int]) -> None:
        self.run, self.position = run, 0
        self.x, self.f = list(run.x), [0] * 32
        self.csrs: dict[int, int] = {FCSR: 0}
        self.base, self.memory = ram[0], bytearray(ram[1])
        for address, data in image.segments:
            if ram[0] <= address and address + len(data) <= sum(ram):
                self.memory[address - ram[0] : address - ram[0] + len(data)] = data
        self._traps = iter([*run.traps, TakenTrap(1 << 62, 0, 0)])
        self._trap = next(self._traps)
        self._trapped(0)

    def go(self, position: int) -> None:
        """Go forward to a position."""
        run, x = self.run, self.x
        rd, values, others = run.rd, run.values, run.others
        for at in range(self.position, position):
            if rd[at] >= 0:
                x[rd[at]] = values[at]
            if at in others:
                self._apply(others[at])
            if self._trap.position == at + 1:
                self._trapped(at + 1)
        self.position = position

    def _trapped(self, position: int) -> None:
        while self._trap.position <= position:
            self.csrs |= {MEPC: self._trap.epc, MCAUSE: self._trap.cause}
            self.csrs.pop(MTVAL, None)
            self.csrs.pop(MSTATUS, None)
            self._trap = next(self._traps)

    def _apply(self, effects: Effects) -> None:
        for kind, number, value in effects.registers:
            if kind == "x":
                self.x[number] = value
            elif kind == "f":
                self.f[number] = value & BOX
            else:
                self._write_csr(number, value)
        for address, size, value in effects.stores:
            offset = address - self.base
            if 0 <= offset <= len(self.memory) - size:
                self.memory[offset : offset + size] = value.to_bytes(size, "little")

    def register(self, number: int) -> int:
        """Return a register by DWARF's number: x, then f."""
        return self.x[number] if number < 32 else self.f[number - 32]

    def byte(self, address: int) -> int | None:
        """Return a byte of RAM."""
        offset = address - self.base
        return self.memory[offset] if 0 <= offset < len(self.memory) else None

    def _write_csr(self, number: int, value: int) -> None:
        fcsr = self.csrs[FCSR]
        if number == FFLAGS:
            self.csrs[FCSR] = fcsr & ~0x1F | value & 0x1F
        elif number == FRM:
            self.csrs[FCSR] = fcsr & 0x1F | (value & 7) << 5
        else:
            self.csrs[number] = value


def states(run: Run, image: Image, ram: tuple[int, int], positions: Iterable[int]) -> Iterator[Truth]:
    """Yield the state at each of *positions*, which increase; the same object each time."""
    truth = Truth(run, image, ram)
    for position in positions:
        truth.go(position)
        yield truth


def read_run(path: Path, xlen: int) -> Run:
    with open(path) as log:
        return Run(log, xlen)
