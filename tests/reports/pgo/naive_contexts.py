"""The contexts of calls, by a call stack that is made here, of the addresses that ran, the names that nm prints, and
what objdump says of the instructions.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.session.exports.exported import binutils

Context = tuple[tuple[int, ...], int]
"""The calls that led to a function, and where it begins."""
_LINKS = ("jal", "jalr", "c.jal", "c.jalr", "call")
_JUMPS = ("j", "jr", "c.j", "c.jr", "tail", "b", "c.b")


class Instruction(NamedTuple):
    size: int
    mnemonic: str


def instructions(elf: Path) -> dict[int, Instruction]:
    found = {}
    for line in binutils("objdump", "-d", str(elf)).splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+([0-9a-f]+)\s+(\S+)", line)
        if match is not None:
            found[int(match[1], 16)] = Instruction(len(match[2]) // 2, match[3])
    return found


def functions(elf: Path) -> dict[int, int]:
    """Where functions and labels begin, and their sizes; 0: up to the next one."""
    found: dict[int, int] = {}
    for line in binutils("nm", "--numeric-sort", "--print-size", str(elf)).splitlines():
        address, *size, kind, name = line.split()
        if kind in "tTwW" and not name.startswith(("$", ".L")):
            start = int(address, 16)
            found[start] = max(found.get(start, 0), int(size[0], 16) if size else 0)
    return found


class _Frame(NamedTuple):
    context: Context
    back: int
    """Where it returns, 0 for a jump and a trap."""
    interrupted: int = 0
    """Of a trap: the instruction that had run before it."""


class NaiveContexts:
    """What ran by contexts, of *pcs*. *handler*: where the handler of traps begins, 0 for none."""

    def __init__(self, elf: Path, pcs: Sequence[int], handler: int = 0) -> None:
        self._code, self._sizes, self._handler = instructions(elf), functions(elf), handler
        self._starts = list(self._sizes)
        self.ran: dict[Context, Counter[int]] = defaultdict(Counter)
        self.entries: Counter[Context] = Counter()
        self.calls: dict[Context, Counter[tuple[int, int]]] = defaultdict(Counter)
        self._jumps: dict[tuple[int, int], set[int]] = defaultdict(set)
        for before, pc in pairwise(pcs):
            if self._code[before].mnemonic.startswith(_JUMPS) and pc == self._start(pc):
                self._jumps[self._start(before), pc].add(before)
        self._frames = [_Frame(((), self._start(pcs[0])), 0)]
        self._count(pcs[0])
        for before, pc in pairwise(pcs):
            self._go(before, pc)
            self._count(pc)

    def _count(self, pc: int) -> None:
        context = self._frames[-1].context
        size = self._sizes[context[1]]
        if not size or pc < context[1] + size:  # else code without a symbol
            self.ran[context][pc] += 1

    def _start(self, pc: int) -> int:
        return self._starts[bisect_right(self._starts, pc) - 1]

    def _go(self, before: int, pc: int) -> None:
        instruction, top = self._code[before], self._frames[-1]
        after = before + instruction.size
        if pc == self._handler and before != self._handler:
            self._frames.append(_Frame(((), pc), 0, before))
            self.entries[(), pc] += 1
        elif instruction.mnemonic == "mret":
            while not (frame := self._frames.pop()).interrupted:
                pass
            self._go(frame.interrupted, pc)
        elif instruction.mnemonic in _LINKS and pc != after:
            self._call(before, pc, after)
        elif instruction.mnemonic == "ret":
            while self._frames.pop().back != pc:
                pass
        elif self._start(pc) != top.context[1]:
            if pc == self._start(pc) and instruction.mnemonic.startswith(_JUMPS):
                sites = self._jumps[top.context[1], pc]
                self._call(before if len(sites) == 1 else 0, pc, 0)
            else:
                self._frames[-1] = top._replace(context=(top.context[0], self._start(pc)))

    def _call(self, site: int, function: int, back: int) -> None:
        sites, caller = self._frames[-1].context
        context: Context = ((), function)
        if site:
            self.calls[sites, caller][site, function] += 1
            context = ((*(sites[: sites.index(site)] if site in sites else sites), site), function)
        self.entries[context] += 1
        self._frames.append(_Frame(context, back))
